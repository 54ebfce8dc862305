package board;

import com.sun.net.httpserver.HttpServer;
import io.prometheus.client.CollectorRegistry;
import io.prometheus.client.exporter.common.TextFormat;
import io.prometheus.client.hotspot.DefaultExports;
import java.io.IOException;
import java.io.StringWriter;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Departure boards of the region's stops. */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws IOException {
        boolean progressive = System.getenv().getOrDefault("VARIANT", "flawed").equals("flawed");
        var departures = new Departures(new FeedClient(URI.create(System.getenv("FEED_URL"))), progressive);
        DefaultExports.initialize();

        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 512);
        server.setExecutor(Executors.newFixedThreadPool(128));
        server.createContext("/stops/", departures);
        server.createContext("/health", exchange -> {
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.createContext("/metrics", exchange -> {
            var text = new StringWriter();
            TextFormat.write004(text, CollectorRegistry.defaultRegistry.metricFamilySamples());
            byte[] body = text.toString().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", TextFormat.CONTENT_TYPE_004);
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
