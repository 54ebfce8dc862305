import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Executors;

/** Labels for a canteen's dishes: ingredients from our recipes, allergens from the food agency's register. */
public final class LabelService {
    record Dish(int id, String name, List<String> ingredients) {}

    private static final List<String> PANTRY = List.of(
            "wheat flour", "barley", "celeriac", "mustard", "sesame", "hazelnut", "cream", "egg", "anchovy", "lupin",
            "tofu", "shrimp", "potato", "leek", "rice", "lentils");
    private static final List<String> KINDS = List.of("soup", "gratin", "salad", "curry", "pie", "stew");

    private final Map<Integer, Dish> dishes = new java.util.HashMap<>();
    private final HttpClient client;
    private final URI register;

    LabelService(URI register) {
        this.register = register;
        this.client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(Duration.ofSeconds(2))
                .build();
        for (int id = 1; id <= 300; id++) {
            var parts = new TreeSet<String>();
            for (int i = 0; i < 4; i++) {
                parts.add(PANTRY.get((id * 7 + i * 5) % PANTRY.size()));
            }
            String name = PANTRY.get(id % PANTRY.size()) + " " + KINDS.get(id % KINDS.size());
            dishes.put(id, new Dish(id, name, List.copyOf(parts)));
        }
    }

    private String allergens(Dish dish) throws IOException, InterruptedException {
        String query = String.join(",", dish.ingredients()).replace(" ", "%20");
        HttpRequest request = HttpRequest.newBuilder(register.resolve("/v2/allergens?of=" + query))
                .timeout(Duration.ofSeconds(20))
                .header("Accept", "application/json")
                .GET()
                .build();
        HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IOException("register answered " + answer.statusCode());
        }
        return answer.body();
    }

    private void label(HttpExchange exchange) throws IOException {
        try (exchange) {
            String[] parts = exchange.getRequestURI().getPath().split("/");
            Dish dish = parts.length == 4 ? dishes.get(Integer.parseInt(parts[2])) : null;
            if (dish == null) {
                send(exchange, 404, "{\"error\":\"no such dish\"}");
                return;
            }
            String body = "{\"dish\":%d,\"name\":\"%s\",\"ingredients\":[\"%s\"],\"allergens\":%s}".formatted(
                    dish.id(), dish.name(), String.join("\",\"", dish.ingredients()), allergens(dish));
            send(exchange, 200, body);
        } catch (NumberFormatException e) {
            send(exchange, 400, "{\"error\":\"dish must be a number\"}");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            send(exchange, 502, "{\"error\":\"register is unavailable\"}");
        }
    }

    private static void send(HttpExchange exchange, int status, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        var service = new LabelService(URI.create("http://127.0.0.1:" + (port + 1)));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.createContext("/dishes/", service::label);
        server.createContext("/health", exchange -> {
            try (exchange) {
                send(exchange, 200, "{\"status\":\"up\"}");
            }
        });
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
