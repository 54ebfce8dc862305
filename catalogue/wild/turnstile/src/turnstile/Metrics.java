package turnstile;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;

/** Counters in the text format of Prometheus. */
final class Metrics {
    private static final double[] BUCKETS = {0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5};

    private final LongAdder accepted = new LongAdder();
    private final LongAdder broken = new LongAdder();
    private final Map<String, LongAdder> requests = new ConcurrentSkipListMap<>();
    private final LongAdder[] buckets = new LongAdder[BUCKETS.length + 1];
    private final DoubleAdder seconds = new DoubleAdder();

    Metrics() {
        for (int i = 0; i < buckets.length; i++) {
            buckets[i] = new LongAdder();
        }
    }

    void accepted() {
        accepted.increment();
    }

    void broken() {
        broken.increment();
    }

    void served(String route, int status, double duration) {
        requests.computeIfAbsent("route=\"" + route + "\",status=\"" + status + "\"", key -> new LongAdder()).increment();
        int i = 0;
        while (i < BUCKETS.length && duration > BUCKETS[i]) {
            i++;
        }
        buckets[i].increment();
        seconds.add(duration);
    }

    String exposition() {
        StringBuilder out = new StringBuilder();
        value(out, "connections_accepted_total", "counter", accepted.sum());
        value(out, "connections_broken_total", "counter", broken.sum());
        out.append("# TYPE http_requests_total counter\n");
        requests.forEach((labels, count) ->
                out.append("http_requests_total{").append(labels).append("} ").append(count.sum()).append('\n'));
        out.append("# TYPE http_request_duration_seconds histogram\n");
        long sum = 0;
        for (int i = 0; i < buckets.length; i++) {
            sum += buckets[i].sum();
            String bound = i < BUCKETS.length ? String.valueOf(BUCKETS[i]) : "+Inf";
            out.append("http_request_duration_seconds_bucket{le=\"").append(bound).append("\"} ").append(sum).append('\n');
        }
        out.append("http_request_duration_seconds_sum ").append(seconds.sum()).append('\n');
        out.append("http_request_duration_seconds_count ").append(sum).append('\n');
        process(out);
        return out.toString();
    }

    private static void process(StringBuilder out) {
        var system = (com.sun.management.UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        value(out, "process_cpu_seconds_total", "counter", system.getProcessCpuTime() / 1e9);
        value(out, "process_open_fds", "gauge", system.getOpenFileDescriptorCount());
        value(out, "process_max_fds", "gauge", system.getMaxFileDescriptorCount());
        value(out, "process_start_time_seconds", "gauge", ManagementFactory.getRuntimeMXBean().getStartTime() / 1e3);
        value(out, "jvm_threads_current", "gauge", ManagementFactory.getThreadMXBean().getThreadCount());
        out.append("# TYPE jvm_memory_bytes_used gauge\njvm_memory_bytes_used{area=\"heap\"} ")
                .append(ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()).append('\n');
        out.append("# TYPE jvm_gc_collection_seconds summary\n");
        for (GarbageCollectorMXBean gc : ManagementFactory.getGarbageCollectorMXBeans()) {
            String label = "{gc=\"" + gc.getName() + "\"} ";
            out.append("jvm_gc_collection_seconds_count").append(label).append(gc.getCollectionCount()).append('\n');
            out.append("jvm_gc_collection_seconds_sum").append(label).append(gc.getCollectionTime() / 1e3).append('\n');
        }
    }

    private static void value(StringBuilder out, String name, String type, double value) {
        out.append("# TYPE ").append(name).append(' ').append(type).append('\n');
        out.append(name).append(' ').append(String.format(Locale.ROOT, "%.6f", value)).append('\n');
    }
}
