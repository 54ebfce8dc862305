package harbour;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Level;
import java.util.logging.Logger;

public final class Main {
    private static final Logger LOG = Logger.getLogger("harbour");
    private static final int THREADS = 128;

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(args[0]);
        String variant = System.getenv().getOrDefault("VARIANT", "mended");
        boolean slowSurvey = variant.equals("healthy");
        SurveyClient survey = slowSurvey ? new SurveyClient(75, 105) : new SurveyClient(12, 14);
        Planner plan = variant.equals("flawed") ? new BerthPlan(survey) : new SurveyedPlan(survey);

        System.setProperty("sun.net.httpserver.nodelay", "true");
        System.setProperty("sun.net.httpserver.maxIdleConnections", "1000");
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 512);
        server.setExecutor(Executors.newFixedThreadPool(THREADS));
        server.createContext("/health", exchange -> answer(exchange, 200, "{\"status\":\"ok\"}"));
        server.createContext("/berths/next", exchange -> {
            try {
                Vessel vessel = Vessel.parse(query(exchange));
                int tideCm = tide();
                Allocation given = plan.allocate(vessel);
                LOG.log(Level.FINE, "{0} lies at {1}", new Object[] {vessel.callSign(), given.quay()});
                answer(exchange, 200, "{\"vessel\":\"" + vessel.callSign() + "\",\"tide_cm\":" + tideCm
                    + ",\"berth\":" + given.json() + "}");
            } catch (IllegalArgumentException e) {
                answer(exchange, 400, "{\"error\":\"bad vessel\"}");
            } catch (RuntimeException e) {
                LOG.log(Level.WARNING, "no berth", e);
                answer(exchange, 500, "{\"error\":\"no berth\"}");
            }
        });
        server.createContext("/berths/count", exchange -> answer(exchange, 200, "{\"recent\":" + plan.size() + "}"));
        server.start();
        LOG.info("berth plan on port " + port);
    }

    /** The tide, from the gauge at the pier. */
    private static int tide() {
        SurveyClient.pause(15_000_000L + ThreadLocalRandom.current().nextLong(3_000_000L));
        return ThreadLocalRandom.current().nextInt(80, 340);
    }

    private static Map<String, String> query(HttpExchange exchange) {
        Map<String, String> found = new HashMap<>();
        String raw = exchange.getRequestURI().getRawQuery();
        if (raw == null) {
            return found;
        }
        for (String pair : raw.split("&")) {
            String[] parts = pair.split("=", 2);
            if (parts.length == 2) {
                found.put(parts[0], URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
            }
        }
        return found;
    }

    private static void answer(HttpExchange exchange, int status, String json) throws IOException {
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        try (var out = exchange.getResponseBody()) {
            out.write(body);
        }
    }
}
