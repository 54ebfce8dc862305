package turnstile;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Stand-in of the ticket office, a remote server: 10 ms for a gate, 120 ms for a ticket. */
public final class OfficeStandin {
    private static final long GATE_MS = 10;
    private static final long TICKET_MS = "healthy".equals(System.getenv("VARIANT")) ? 300 : 120;

    private OfficeStandin() {
    }

    public static void main(String[] args) throws IOException {
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0]));
        HttpServer server = HttpServer.create(address, 1024);
        server.createContext("/gates/", exchange -> answer(exchange, GATE_MS, "allowed"));
        server.createContext("/tickets/", exchange -> answer(exchange, TICKET_MS, "B" + exchange.hashCode() % 40));
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }

    private static void answer(HttpExchange exchange, long afterMs, String text) throws IOException {
        try (exchange) {
            Thread.sleep(afterMs);
            byte[] body = text.getBytes(StandardCharsets.US_ASCII);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
