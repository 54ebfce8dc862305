package chess;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.Executors;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Asks the chess federation for the bulletin in force; its server is a stand-in in this process. */
@Component
public class Federation {
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final HttpRequest bulletin;

    Federation(@Value("${league.federation-port}") int port, @Value("${league.variant}") String variant)
            throws IOException {
        long latencyMs = variant.equals("healthy") ? 180 : 5;
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(200));
        server.createContext("/bulletin", exchange -> {
            try {
                Thread.sleep(latencyMs);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
            byte[] body = "2027/02".getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        bulletin = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/bulletin")).build();
    }

    String bulletin() throws IOException, InterruptedException {
        return client.send(bulletin, HttpResponse.BodyHandlers.ofString()).body();
    }
}
