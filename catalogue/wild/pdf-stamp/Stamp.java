import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Puts a trusted time stamp on a document's digest. The stamp comes from a time authority elsewhere. */
public final class Stamp {
    private static final String VARIANT = System.getenv().getOrDefault("VARIANT", "flawed");
    private static final long AUTHORITY_MS = VARIANT.equals("healthy") ? 170 : 80;

    public static void main(String[] args) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 128);
        server.createContext("/stamp/", Stamp::stamp);
        server.createContext("/live", exchange -> reply(exchange, 200, "up"));
        server.setExecutor(workers());
        server.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(0)));
    }

    private static ExecutorService workers() {
        if (VARIANT.equals("flawed")) {
            return Executors.newFixedThreadPool(8);
        }
        return Executors.newCachedThreadPool();
    }

    private static void stamp(HttpExchange exchange) throws IOException {
        String document = exchange.getRequestURI().getPath().substring("/stamp/".length());
        if (document.isBlank() || document.length() > 64) {
            reply(exchange, 400, "document number expected");
            return;
        }
        try {
            String digest = sha256(document);
            String token = askAuthority(digest);
            reply(exchange, 200, "{\"document\":\"%s\",\"sha256\":\"%s\",\"token\":\"%s\"}".formatted(document, digest, token));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            reply(exchange, 503, "shutting down");
        } catch (Exception e) {
            reply(exchange, 500, e.toString());
        }
    }

    private static String askAuthority(String digest) throws Exception {
        TimeUnit.MILLISECONDS.sleep(AUTHORITY_MS); // the authority's answer
        return sha256(digest + System.currentTimeMillis() / 60_000).substring(0, 32);
    }

    private static String sha256(String text) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest);
    }

    private static void reply(HttpExchange exchange, int status, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", text.startsWith("{") ? "application/json" : "text/plain");
        exchange.sendResponseHeaders(status, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }
}
