import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.Executors;

/** Custody of seed batches, for the merchants' scanner app. */
public final class SeedBatches {
    private static final String VARIANT = System.getenv("VARIANT");
    private static final int PORT = Integer.parseInt(System.getenv("PORT"));
    private static final Map<String, CustodyChain> CHAINS = Map.of(
            "WW-2291", new CustodyChain("WW-2291", 24_000),
            "SB-0764", new CustodyChain("SB-0764", 24_000));

    private final CustodyProof proof = new CustodyProof(!VARIANT.equals("flawed"));
    private final boolean withTests = VARIANT.equals("healthy");
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    public static void main(String[] args) throws IOException {
        System.setProperty("sun.net.httpserver.nodelay", "true");
        SeedBatches service = new SeedBatches();
        if (service.withTests) {
            Laboratory.start(PORT + 1);
        }
        HttpServer server = HttpServer.create(new InetSocketAddress(PORT), 512);
        server.setExecutor(Executors.newFixedThreadPool(160));
        server.createContext("/up", exchange -> send(exchange, 200, "{\"status\":\"up\"}"));
        server.createContext("/batches/", service::custody);
        server.start();
    }

    private void custody(HttpExchange exchange) throws IOException {
        String[] parts = exchange.getRequestURI().getPath().split("/");
        CustodyChain chain = parts.length == 4 && parts[3].equals("custody") ? CHAINS.get(parts[2]) : null;
        if (chain == null) {
            send(exchange, 404, "{\"error\":\"no such batch\"}");
            return;
        }
        String seal = proof.sealOf(chain);
        String tests = withTests ? ",\"tests\":" + testsOf(chain.batch) : "";
        send(exchange, 200, "{\"batch\":\"" + chain.batch + "\",\"links\":" + chain.links.size()
                + ",\"seal\":\"" + seal + "\"" + tests + "}");
    }

    private String testsOf(String batch) throws IOException {
        URI uri = URI.create("http://127.0.0.1:" + (PORT + 1) + "/germination/" + batch);
        try {
            return client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IOException(error);
        }
    }

    private static void send(HttpExchange exchange, int status, String json) throws IOException {
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
