import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.LocalDate;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Nurses swap a shift of their ward for one of another ward; rosters stay within the hours agreed. */
public final class WardSwaps {
    private static final String VARIANT = System.getenv().getOrDefault("VARIANT", "flawed");
    private static final int WARDS = 12;

    static final class Roster {
        final int ward;
        private final int[] hours = new int[14];
        private long revision;

        Roster(int ward) {
            this.ward = ward;
        }

        void shift(int day, int by) {
            hours[day % hours.length] += by;
            revision++;
        }

        String seal() throws Exception {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (int each : hours) {
                digest.update((ward + ":" + each + ":" + revision).getBytes(StandardCharsets.UTF_8));
            }
            return HexFormat.of().formatHex(digest.digest(), 0, 6);
        }
    }

    private final Map<Integer, Roster> rosters = new ConcurrentHashMap<>();
    private final Map<String, LongAdder> requests = new ConcurrentHashMap<>();
    private final LongAdder nanos = new LongAdder();
    private final AtomicInteger active = new AtomicInteger();

    WardSwaps() {
        for (int ward = 1; ward <= WARDS; ward++) {
            rosters.put(ward, new Roster(ward));
        }
    }

    /** The staff register says whether both nurses hold the certificates; a call to the hospital's network. */
    private void checkCertificates() throws InterruptedException {
        int usual = VARIANT.equals("healthy") ? 120 : 20;
        Thread.sleep(usual + ThreadLocalRandom.current().nextInt(10));
    }

    private String exchange(Roster first, Roster second, int day) throws Exception {
        synchronized (first) {
            first.shift(day, -8);
            synchronized (second) {
                second.shift(day, 8);
                return first.seal() + "-" + second.seal();
            }
        }
    }

    private String swap(int from, int to) throws Exception {
        checkCertificates();
        Roster giving = rosters.get(from);
        Roster taking = rosters.get(to);
        int day = LocalDate.now().getDayOfYear();
        return switch (VARIANT) {
            case "mended" -> from < to ? exchange(giving, taking, day) : exchange(taking, giving, day);
            case "healthy" -> propose(giving, taking, day);
            default -> exchange(giving, taking, day);
        };
    }

    private String propose(Roster giving, Roster taking, int day) throws Exception {
        String left;
        synchronized (giving) {
            giving.shift(day, -8);
            left = giving.seal();
        }
        synchronized (taking) {
            taking.shift(day, 8);
            return left + "-" + taking.seal();
        }
    }

    private void handle(HttpExchange http) throws IOException {
        long began = System.nanoTime();
        active.incrementAndGet();
        int status = 200;
        String body;
        try {
            String[] parts = http.getRequestURI().getPath().split("/");
            int from = Integer.parseInt(parts[2]);
            int to = Integer.parseInt(parts[3]);
            if (from == to || !rosters.containsKey(from) || !rosters.containsKey(to)) {
                status = 422;
                body = "{\"error\":\"two different wards, please\"}";
            } else {
                body = "{\"from\":" + from + ",\"to\":" + to + ",\"hours\":8,\"seal\":\"" + swap(from, to) + "\"}";
            }
        } catch (Exception error) {
            status = 400;
            body = "{\"error\":\"not a swap\"}";
        }
        send(http, status, "application/json", body);
        active.decrementAndGet();
        nanos.add(System.nanoTime() - began);
        requests.computeIfAbsent(Integer.toString(status), key -> new LongAdder()).increment();
    }

    private void metrics(HttpExchange http) throws IOException {
        StringBuilder out = new StringBuilder("# TYPE http_server_requests_seconds summary\n");
        long total = 0;
        for (var each : requests.entrySet()) {
            total += each.getValue().sum();
            out.append("http_server_requests_seconds_count{method=\"GET\",status=\"").append(each.getKey())
                .append("\",uri=\"/swaps/{from}/{to}\"} ").append(each.getValue().sum()).append('\n');
        }
        out.append(String.format(Locale.ROOT, "http_server_requests_seconds_sum{method=\"GET\",status=\"200\","
            + "uri=\"/swaps/{from}/{to}\"} %.6f%n", nanos.sum() / 1e9));
        out.append("# TYPE http_server_requests_active_seconds summary\n");
        out.append("http_server_requests_active_seconds_count ").append(active.get()).append('\n');
        Map<Thread.State, Long> states = new TreeMap<>(Stream.of(Thread.State.values())
            .collect(Collectors.toMap(state -> state, state -> 0L)));
        var threads = ManagementFactory.getThreadMXBean();
        for (var info : threads.getThreadInfo(threads.getAllThreadIds())) {
            if (info != null) {
                states.merge(info.getThreadState(), 1L, Long::sum);
            }
        }
        out.append("# TYPE jvm_threads_states_threads gauge\n");
        states.forEach((state, count) -> out.append("jvm_threads_states_threads{state=\"")
            .append(state.name().toLowerCase(Locale.ROOT).replace('_', '-')).append("\"} ").append(count).append('\n'));
        out.append("jvm_threads_live_threads ").append(threads.getThreadCount()).append('\n');
        MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
        out.append("jvm_memory_used_bytes{area=\"heap\"} ").append(heap.getUsed()).append('\n');
        out.append("jvm_memory_max_bytes{area=\"heap\"} ").append(heap.getMax()).append('\n');
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        out.append("process_cpu_usage ").append(Math.max(0, system.getProcessCpuLoad())).append('\n');
        out.append("system_cpu_count ").append(Runtime.getRuntime().availableProcessors()).append('\n');
        send(http, 200, "text/plain; version=0.0.4", out.toString());
    }

    private static void send(HttpExchange http, int status, String type, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        http.getResponseHeaders().set("Content-Type", type);
        http.sendResponseHeaders(status, body.length);
        http.getResponseBody().write(body);
        http.close();
    }

    public static void main(String[] args) throws IOException {
        WardSwaps desk = new WardSwaps();
        HttpServer server = HttpServer.create(
            new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 512);
        server.createContext("/swaps/", desk::handle);
        server.createContext("/metrics", desk::metrics);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
