package desk;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Stands in for the register of the member states, which is far away and takes its time. */
public final class Register {
    private Register() {}

    public static void main(String[] args) throws IOException {
        int millis = "healthy".equals(System.getenv("VARIANT")) ? 260 : 150;
        byte[] body = "{\"name\":\"Muster GmbH\",\"since\":1998}".getBytes(StandardCharsets.UTF_8);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 512);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/holders/", exchange -> {
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
