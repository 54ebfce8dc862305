package soil;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Stand-in of the national soil survey, whose plans allow so many classifications an hour. */
final class SurveyOffice {
    private static final Map<String, Integer> HOURLY = Map.of("parish-4471", 1_500, "county-0093", 5_000_000);
    private static final String[] CLASSES = {"loamy sand", "silt loam", "clay", "peat", "chalk"};
    private static final long LATENCY_MS = 150;

    private final Map<String, AtomicInteger> used = new ConcurrentHashMap<>();

    void start(int port) throws IOException {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(256));
        server.createContext("/v3/classify/", exchange -> {
            try {
                Thread.sleep(LATENCY_MS);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            String key = exchange.getRequestHeaders().getFirst("X-Api-Key");
            int allowed = HOURLY.getOrDefault(key, 0);
            int count = used.computeIfAbsent(key, any -> new AtomicInteger()).incrementAndGet();
            String path = exchange.getRequestURI().getPath();
            int hash = Math.abs(path.hashCode());
            int status = count <= allowed ? 200 : 429;
            String body = status == 200
                    ? CLASSES[hash % CLASSES.length] + ";" + (20 + hash % 90) + ";" + (5.0 + hash % 30 / 10.0)
                    : "plan allows " + allowed + " an hour; next period begins at "
                            + LocalTime.now().truncatedTo(ChronoUnit.HOURS).plusHours(1);
            byte[] bytes = body.getBytes();
            exchange.sendResponseHeaders(status, bytes.length);
            exchange.getResponseBody().write(bytes);
            exchange.close();
        });
        server.start();
    }
}
