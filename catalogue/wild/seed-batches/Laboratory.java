import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Stand-in of the germination laboratory. */
final class Laboratory {
    private static final long LATENCY_MS = 240;

    static void start(int port) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        server.setExecutor(Executors.newFixedThreadPool(160));
        server.createContext("/germination/", exchange -> {
            try {
                Thread.sleep(LATENCY_MS);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            byte[] body = "{\"germination\":94.5,\"purity\":99.1}".getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
