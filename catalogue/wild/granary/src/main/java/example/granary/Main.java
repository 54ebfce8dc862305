package example.granary;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.ExecutorServiceMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Books what farmers deliver to the silos. */
public final class Main {
    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final EventStore store = new EventStore();
    private final Silos silos;
    private final Lab lab;

    private Main(String labUrl) {
        silos = "flawed".equals(System.getenv("VARIANT")) ? new Replay(store) : new Snapshots(store);
        lab = new Lab(labUrl, registry);
    }

    public static void main(String[] args) throws IOException {
        new Main(args[1]).serve(Integer.parseInt(args[0]));
    }

    private void serve(int port) throws IOException {
        new JvmMemoryMetrics().bindTo(registry);
        new JvmGcMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
        Gauge.builder("eventstore.events", store, EventStore::size).register(registry);
        ExecutorService threads =
                ExecutorServiceMetrics.monitor(registry, Executors.newFixedThreadPool(100), "http");
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 256);
        server.setExecutor(threads);
        server.createContext("/health", exchange -> answer(exchange, 200, "text/plain", "up\n"));
        server.createContext("/metrics",
                exchange -> answer(exchange, 200, "text/plain; version=0.0.4", registry.scrape()));
        server.createContext("/silos/", this::timed);
        server.start();
    }

    private void timed(HttpExchange exchange) throws IOException {
        Timer.Sample sample = Timer.start(registry);
        int status = 500;
        try {
            status = deliver(exchange);
        } finally {
            sample.stop(Timer.builder("http.server.requests")
                    .tag("uri", "/silos/{silo}/deliveries")
                    .tag("status", String.valueOf(status))
                    .serviceLevelObjectives(Duration.ofMillis(50), Duration.ofMillis(100), Duration.ofMillis(200),
                            Duration.ofMillis(500), Duration.ofSeconds(1), Duration.ofSeconds(2))
                    .register(registry));
        }
    }

    private int deliver(HttpExchange exchange) throws IOException {
        String[] path = exchange.getRequestURI().getPath().split("/");
        if (path.length != 4 || !path[3].equals("deliveries")) {
            return answer(exchange, 404, "text/plain", "not found\n");
        }
        String silo = path[2];
        Map<String, String> query = query(exchange.getRequestURI());
        BigDecimal kg;
        BigDecimal moisture;
        try {
            kg = new BigDecimal(query.getOrDefault("kg", ""));
            moisture = new BigDecimal(query.getOrDefault("moisture", "14.0"));
        } catch (NumberFormatException wrong) {
            return answer(exchange, 400, "text/plain", "kg and moisture have to be numbers\n");
        }
        String grade;
        try {
            grade = lab.grade(moisture);
        } catch (IOException | InterruptedException gone) {
            return answer(exchange, 502, "text/plain", "the lab does not answer\n");
        }
        SiloState state = silos.load(silo);
        if (state.isClosed()) {
            return answer(exchange, 409, "text/plain", "silo is closed\n");
        }
        for (String step : new String[] {"arrived", "weighed", "sampled", "graded", "tipped"}) {
            store.append(silo, Event.step(step, kg, grade));
        }
        store.append(silo, Event.delivered(kg, moisture, grade));
        String json = String.format(
                "{\"silo\":\"%s\",\"grade\":\"%s\",\"kg\":%s,\"on_hand_kg\":%s,\"mean_moisture\":%s,\"deliveries\":%d}%n",
                silo, grade, kg.toPlainString(), state.kg().add(kg).toPlainString(),
                state.meanMoisture().toPlainString(), state.deliveries() + 1);
        return answer(exchange, 201, "application/json", json);
    }

    private static Map<String, String> query(URI uri) {
        Map<String, String> found = new HashMap<>();
        if (uri.getQuery() != null) {
            for (String pair : uri.getQuery().split("&")) {
                int at = pair.indexOf('=');
                if (at > 0) {
                    found.put(pair.substring(0, at), pair.substring(at + 1));
                }
            }
        }
        return found;
    }

    private static int answer(HttpExchange exchange, int status, String type, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
        return status;
    }
}
