package board;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import io.prometheus.client.Counter;
import io.prometheus.client.Histogram;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;

/** GET /stops/{stop}/departures: a line of JSON for each departure, soonest first. */
final class Departures implements HttpHandler {
    private static final Pattern PATH = Pattern.compile("/stops/(\\d{7})/departures");
    private static final Histogram DURATION = Histogram.build()
            .name("http_server_requests_seconds").help("Time in the handler").labelNames("uri")
            .buckets(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5).register();
    private static final Counter REQUESTS = Counter.build()
            .name("http_server_responses_total").help("Answers").labelNames("status").register();

    private final FeedClient feed;
    private final boolean progressive;

    Departures(FeedClient feed, boolean progressive) {
        this.feed = feed;
        this.progressive = progressive;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        var path = PATH.matcher(exchange.getRequestURI().getPath());
        if (!path.matches()) {
            refuse(exchange, 404);
            return;
        }
        try (var timer = DURATION.labels("/stops/{stop}/departures").startTimer()) {
            List<String> rows = feed.departures(path.group(1));
            exchange.getResponseHeaders().set("Content-Type", "application/x-ndjson");
            if (progressive) {
                stream(exchange, rows);
            } else {
                send(exchange, rows);
            }
            REQUESTS.labels("200").inc();
        } catch (FeedClient.FeedException e) {
            refuse(exchange, 502);
        }
    }

    /** A board draws each row as it comes. */
    private static void stream(HttpExchange exchange, List<String> rows) throws IOException {
        exchange.sendResponseHeaders(200, 0);
        try (var out = exchange.getResponseBody()) {
            for (String row : rows) {
                out.write((row + "\n").getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        }
    }

    private static void send(HttpExchange exchange, List<String> rows) throws IOException {
        var body = new ByteArrayOutputStream(2048);
        for (String row : rows) {
            body.writeBytes((row + "\n").getBytes(StandardCharsets.UTF_8));
        }
        exchange.sendResponseHeaders(200, body.size());
        try (var out = exchange.getResponseBody()) {
            body.writeTo(out);
        }
    }

    private static void refuse(HttpExchange exchange, int status) throws IOException {
        REQUESTS.labels(String.valueOf(status)).inc();
        exchange.sendResponseHeaders(status, -1);
        exchange.close();
    }
}
