package router;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;

/** Settings of the tenants of a web shop platform, kept in a store of eight shards. */
public class Router {
    private static final String VARIANT = System.getenv().getOrDefault("VARIANT", "flawed");
    private static final long STORE_MS = VARIANT.equals("healthy") ? 60 : 15;

    public static void main(String[] args) throws IOException {
        var registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        new JvmThreadMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
        int places = VARIANT.equals("healthy") ? 64 : 2;
        Shards shards = new Shards(8, places, VARIANT.equals("flawed"), registry);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 256);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/metrics", exchange -> write(exchange, 200, registry.scrape()));
        server.createContext("/settings/", exchange -> settings(exchange, shards, registry));
        server.start();
    }

    private static void settings(HttpExchange exchange, Shards shards, PrometheusMeterRegistry registry) throws IOException {
        String tenant = exchange.getRequestURI().getPath().substring(10);
        if (!tenant.matches("[a-z]{2,20}")) {
            write(exchange, 404, "unknown tenant\n");
            return;
        }
        var timer = registry.timer("settings.request");
        long begin = System.nanoTime();
        try {
            Thread.sleep(100); // the session of the shop, from the login service
            String json = shards.of(tenant).submit(() -> load(tenant)).get();
            write(exchange, 200, json);
        } catch (InterruptedException | ExecutionException e) {
            write(exchange, 500, e + "\n");
        } finally {
            timer.record(java.time.Duration.ofNanos(System.nanoTime() - begin));
        }
    }

    private static String load(String tenant) throws InterruptedException {
        Thread.sleep(STORE_MS); // a read from the shard
        return "{\"tenant\":\"%s\",\"currency\":\"%s\",\"theme\":%d}".formatted(tenant, tenant.length() % 2 == 0 ? "EUR" : "SEK", tenant.hashCode() & 7);
    }

    private static void write(HttpExchange exchange, int status, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }
}
