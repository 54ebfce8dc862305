package desk;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Checks VAT numbers: form and check digit here, existence with the register of the member states. */
public final class VatDesk {
    private static final String PREFIX = "/v1/vat/";

    private final RegisterClient register;

    private VatDesk(RegisterClient register) {
        this.register = register;
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(args[0]);
        var register = new RegisterClient(URI.create(System.getenv("REGISTER_URL")));
        var plans = new Plans(System.getenv().getOrDefault("VARIANT", "flawed"));
        var desk = new VatDesk(register);

        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        server.setExecutor(Executors.newFixedThreadPool(160));
        server.createContext(PREFIX, desk::check).getFilters().add(new PlanFilter(plans));
        server.createContext("/healthz", exchange -> answer(exchange, 200, "{\"status\":\"up\"}"));
        server.start();
        System.out.println("VAT desk on port " + port);
    }

    private void check(HttpExchange exchange) throws IOException {
        String number = exchange.getRequestURI().getPath().substring(PREFIX.length()).toUpperCase();
        if (!VatNumber.isWellFormed(number)) {
            answer(exchange, 400, "{\"number\":\"" + number.replaceAll("[^A-Z0-9]", "") + "\",\"valid\":false}");
            return;
        }
        try {
            String holder = register.holder(number);
            answer(exchange, 200, "{\"number\":\"" + number + "\",\"valid\":true,\"holder\":" + holder + "}");
        } catch (IOException e) {
            answer(exchange, 502, "{\"error\":\"register does not answer\"}");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            answer(exchange, 503, "{\"error\":\"shutting down\"}");
        }
    }

    static void answer(HttpExchange exchange, int status, String json) throws IOException {
        byte[] body = (json + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }
}
