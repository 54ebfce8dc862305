import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;

/** Stand-in of the food agency's register of allergens. */
public final class Register {
    record Plan(int workers, long millis) {}

    private static Plan plan(String variant) {
        return switch (variant) {
            case "mended" -> new Plan(256, 90);
            case "healthy" -> new Plan(512, 220);
            default -> new Plan(9, 90);
        };
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT")) + 1;
        Plan plan = plan(System.getenv("VARIANT"));
        var workers = new Semaphore(plan.workers(), true);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/v2/allergens", exchange -> {
            try (exchange) {
                workers.acquire();
                try {
                    Thread.sleep(plan.millis());
                } finally {
                    workers.release();
                }
                String query = exchange.getRequestURI().getQuery();
                StringBuilder found = new StringBuilder("[");
                for (String part : query.substring(query.indexOf('=') + 1).split(",")) {
                    if (!part.equals("rice") && !part.equals("potato") && !part.equals("leek")) {
                        found.append(found.length() > 1 ? "," : "").append('"').append(part).append('"');
                    }
                }
                byte[] body = found.append("]").toString().getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("Content-Type", "application/json");
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
