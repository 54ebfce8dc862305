package mill;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/** Insurance claims: keeps the year's open claims in memory and prices one together with its neighbours. */
public class Claims {
    record Claim(int id, String holder, long cents, int[] history) {}

    private static final boolean HEALTHY = "healthy".equals(System.getenv("VARIANT"));
    private final Map<Integer, Claim> open = new HashMap<>();
    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final Timer pricing = Timer.builder("claims.pricing").publishPercentileHistogram().register(registry);

    Claims() {
        new JvmMemoryMetrics().bindTo(registry);
        new JvmGcMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
        int claims = HEALTHY ? 20_000 : 220_000;
        for (int id = 0; id < claims; id++) {
            open.put(id, new Claim(id, "policy-" + id * 7 % 99_991, 1000L + id % 9000, new int[40]));
        }
    }

    String price(int id) throws InterruptedException {
        List<Claim> similar = List.of();
        for (int scenario = 1; scenario <= 6; scenario++) { // mild to severe
            List<Claim> stressed = new ArrayList<>();
            for (int i = 0; i < (HEALTHY ? 50 : 500); i++) {
                Claim claim = open.get((id + i * 37) % open.size());
                stressed.add(new Claim(claim.id(), claim.holder() + "/" + i, claim.cents() * scenario, new int[20]));
            }
            similar = stressed;
        }
        Thread.sleep(HEALTHY ? 170 : 120); // the reinsurer's rating
        long total = 0;
        for (Claim claim : similar) {
            total += claim.cents() + claim.history().length;
        }
        return "{\"claim\":" + id + ",\"similar\":" + similar.size() + ",\"reserve\":" + total / similar.size() + "}";
    }

    private void handle(HttpExchange exchange) throws IOException {
        Timer.Sample sample = Timer.start(registry);
        String[] path = exchange.getRequestURI().getPath().split("/");
        int status = 200;
        String text;
        try {
            text = price(Integer.parseInt(path[2]));
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
            status = 404;
            text = "{\"error\":\"no such claim\"}";
        } catch (InterruptedException e) {
            status = 503;
            text = "{\"error\":\"stopping\"}";
        }
        send(exchange, status, text);
        sample.stop(pricing);
    }

    private static void send(HttpExchange exchange, int status, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws IOException {
        Claims mill = new Claims();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 256);
        server.createContext("/claims/", mill::handle);
        server.createContext("/prometheus", exchange -> send(exchange, 200, mill.registry.scrape()));
        server.setExecutor(Executors.newFixedThreadPool(120));
        server.start();
    }
}
