import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** The service's metrics, as text for Prometheus. */
final class Metrics {
    private final LongAdder requests = new LongAdder();
    private final LongAdder nanos = new LongAdder();
    private final AtomicLong max = new AtomicLong();

    void observe(long tookNanos) {
        requests.increment();
        nanos.add(tookNanos);
        max.accumulateAndGet(tookNanos, Math::max);
    }

    String text(ThreadPoolExecutor[] nodes) {
        StringBuilder out = new StringBuilder();
        String labels = "{method=\"GET\",outcome=\"SUCCESS\",status=\"200\",uri=\"/gauges/{id}\"}";
        line(out, "http_server_requests_seconds_count" + labels, requests.sum());
        line(out, "http_server_requests_seconds_sum" + labels, nanos.sum() / 1e9);
        line(out, "http_server_requests_seconds_max" + labels, max.getAndSet(0) / 1e9);
        for (int i = 0; i < nodes.length; i++) {
            String name = "{name=\"node-" + i + "\"}";
            line(out, "executor_active_threads" + name, nodes[i].getActiveCount());
            line(out, "executor_pool_size_threads" + name, nodes[i].getPoolSize());
            line(out, "executor_pool_max_threads" + name, nodes[i].getMaximumPoolSize());
            line(out, "executor_queued_tasks" + name, nodes[i].getQueue().size());
            line(out, "executor_completed_tasks_total" + name, nodes[i].getCompletedTaskCount());
        }
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        Runtime runtime = Runtime.getRuntime();
        line(out, "process_cpu_usage", system.getProcessCpuLoad());
        line(out, "system_cpu_usage", system.getCpuLoad());
        line(out, "system_cpu_count", runtime.availableProcessors());
        line(out, "jvm_threads_live_threads", ManagementFactory.getThreadMXBean().getThreadCount());
        line(out, "jvm_memory_used_bytes{area=\"heap\"}", runtime.totalMemory() - runtime.freeMemory());
        return out.toString();
    }

    private static void line(StringBuilder out, String name, double value) {
        out.append(name).append(' ').append(String.format(Locale.ROOT, "%.6f", value)).append('\n');
    }
}
