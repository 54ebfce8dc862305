import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.regex.Pattern;

/** Levels of river gauges, for the flood desk. */
public final class RiverLevels {
    private static final String VARIANT = System.getenv("VARIANT");
    private static final int PORT = Integer.parseInt(System.getenv("PORT"));
    private static final int NODES = 8;
    private static final int READS_PER_NODE = VARIANT.equals("healthy") ? 64 : 1;
    private static final long NODE_MS = VARIANT.equals("healthy") ? 250 : 15;
    private static final Pattern GAUGE = Pattern.compile("[A-Z]{2}-\\d{4}");

    private final Placement placement = new Placement(NODES, VARIANT.equals("flawed"));
    private final ThreadPoolExecutor[] nodes = new ThreadPoolExecutor[NODES];
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Metrics metrics = new Metrics();

    private RiverLevels() {
        for (int i = 0; i < NODES; i++) {
            nodes[i] = (ThreadPoolExecutor) Executors.newFixedThreadPool(READS_PER_NODE);
        }
    }

    public static void main(String[] args) throws IOException {
        StorageNodes.start(PORT + 1, NODE_MS);
        RiverLevels service = new RiverLevels();
        HttpServer server = HttpServer.create(new InetSocketAddress(PORT), 512);
        server.setExecutor(Executors.newFixedThreadPool(160));
        server.createContext("/gauges/", service::gauge);
        server.createContext("/actuator/health", exchange -> send(exchange, 200, "application/json", "{\"status\":\"UP\"}"));
        server.createContext("/actuator/prometheus",
                exchange -> send(exchange, 200, "text/plain; version=0.0.4", service.metrics.text(service.nodes)));
        server.start();
    }

    private void gauge(HttpExchange exchange) throws IOException {
        long began = System.nanoTime();
        String gauge = exchange.getRequestURI().getPath().substring("/gauges/".length());
        if (!GAUGE.matcher(gauge).matches()) {
            send(exchange, 404, "application/json", "{\"error\":\"no such gauge\"}");
            return;
        }
        int node = placement.of(gauge);
        try {
            String level = nodes[node].submit(() -> read(node, gauge)).get();
            send(exchange, 200, "application/json", level);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException error) {
            send(exchange, 502, "application/json", "{\"error\":\"storage node failed\"}");
        }
        metrics.observe(System.nanoTime() - began);
    }

    private String read(int node, String gauge) throws IOException, InterruptedException {
        URI uri = URI.create("http://127.0.0.1:" + (PORT + 1) + "/nodes/" + node + "/" + gauge);
        return client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body();
    }

    private static void send(HttpExchange exchange, int status, String type, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
