package board.standin;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Stands in for the operators' feed. */
public final class Feed {
    private static final String[] TO = {"Altona", "Bergedorf", "Harburg", "Wedel", "Poppenbuettel", "Airport"};

    private Feed() {}

    public static void main(String[] args) throws IOException {
        int millis = "healthy".equals(System.getenv("VARIANT")) ? 180 : 70;
        var text = new StringBuilder();
        for (int i = 0; i < 14; i++) {
            text.append("S%d;%s;%02d:%02d;%d%n".formatted(i % 5 + 1, TO[i % TO.length], 17 + i / 10, i * 6 % 60, i % 4));
        }
        byte[] body = text.toString().getBytes(StandardCharsets.UTF_8);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 512);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/feed/", exchange -> {
            try {
                Thread.sleep(millis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
