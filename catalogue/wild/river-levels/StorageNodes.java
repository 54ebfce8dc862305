import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Stand-in of the storage nodes. */
final class StorageNodes {
    static void start(int port, long latencyMs) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        server.setExecutor(Executors.newFixedThreadPool(128));
        server.createContext("/nodes/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            String gauge = path.substring(path.lastIndexOf('/') + 1);
            try {
                Thread.sleep(latencyMs);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            int level = 120 + Integer.parseInt(gauge.substring(3)) % 400;
            byte[] body = ("{\"gauge\":\"" + gauge + "\",\"level_cm\":" + level + "}").getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
