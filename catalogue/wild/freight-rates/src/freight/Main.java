package freight;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Freight rates over HTTP. */
public final class Main {
    private static final Logger LOG = Logger.getLogger("freight");
    private static final int CARRIERS = 120;
    private static final int RATES_PER_LANE = 60;

    private interface Route {
        String answer(Map<String, String> query) throws Exception;
    }

    public static void main(String[] arguments) throws IOException {
        Tariff tariff = Tariff.load(CARRIERS, Integer.getInteger("freight.ratesPerLane", RATES_PER_LANE));
        LOG.info(() -> "tariff with " + tariff.rows() + " rates");
        Surcharges surcharges = new Surcharges(Long.getLong("freight.surchargeMs", 10));
        RateDesk desk = new RateDesk(tariff, surcharges, Integer.getInteger("freight.candidates", 1000));

        int port = Integer.parseInt(arguments[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 256);
        server.setExecutor(Executors.newFixedThreadPool(128));
        route(server, "/rates", query -> rates(desk, query));
        route(server, "/carriers", query -> carriers(tariff));
        route(server, "/health", query -> "{\"ok\":true}");
        server.start();
        LOG.info(() -> "listening on " + port);
    }

    private static String rates(RateDesk desk, Map<String, String> query) throws Exception {
        int from = place(query.get("from"));
        int to = place(query.get("to"));
        double kilos = Double.parseDouble(query.getOrDefault("kg", "1"));
        StringBuilder json = new StringBuilder("{\"quotes\":[");
        List<Quote> quotes = desk.cheapest(from, to, kilos);
        for (int i = 0; i < quotes.size(); i++) {
            Quote quote = quotes.get(i);
            json.append(i == 0 ? "" : ",").append("{\"carrier\":\"").append(quote.rate().carrier.name());
            json.append("\",\"reference\":\"").append(quote.reference());
            json.append("\",\"price\":").append(String.format(Locale.ROOT, "%.2f", quote.price())).append('}');
        }
        return json.append("]}").toString();
    }

    private static String carriers(Tariff tariff) {
        StringBuilder json = new StringBuilder("[");
        for (Carrier carrier : tariff.carriers()) {
            json.append(json.length() > 1 ? "," : "").append('"').append(carrier.name()).append('"');
        }
        return json.append(']').toString();
    }

    private static int place(String text) {
        int place = Integer.parseInt(text);
        if (place < 0 || place >= Tariff.PLACES) {
            throw new IllegalArgumentException("no place " + place);
        }
        return place;
    }

    private static void route(HttpServer server, String path, Route route) {
        server.createContext(path, exchange -> {
            try (exchange) {
                String body;
                int status = 200;
                try {
                    body = route.answer(query(exchange));
                } catch (IllegalArgumentException error) {
                    status = 400;
                    body = "{\"error\":\"bad request\"}";
                } catch (Exception error) {
                    LOG.log(Level.WARNING, "failed: " + exchange.getRequestURI(), error);
                    status = 500;
                    body = "{\"error\":\"internal\"}";
                }
                send(exchange, status, body);
            }
        });
    }

    private static Map<String, String> query(HttpExchange exchange) {
        Map<String, String> values = new HashMap<>();
        String query = exchange.getRequestURI().getQuery();
        for (String pair : query == null ? new String[0] : query.split("&")) {
            int at = pair.indexOf('=');
            if (at > 0) {
                values.put(pair.substring(0, at), pair.substring(at + 1));
            }
        }
        return values;
    }

    private static void send(HttpExchange exchange, int status, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
    }
}
