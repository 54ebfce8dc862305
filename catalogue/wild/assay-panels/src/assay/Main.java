package assay;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** HTTP front of the laboratory. */
public final class Main {

    private static final Logger LOG = Logger.getLogger("assay");
    private static final Pattern PANEL = Pattern.compile("/samples/(S-\\d{3,8})/panel");

    private final Panels panels;

    private Main(Panels panels) {
        this.panels = panels;
    }

    public static void main(String[] args) throws IOException {
        Settings settings = Settings.fromEnvironment();
        int port = Integer.parseInt(args[0]);
        Main front = new Main(new Panels(settings));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        server.setExecutor(Executors.newFixedThreadPool(settings.requestThreads(), Panels.named("request")));
        server.createContext("/alive", exchange -> send(exchange, 200, "{\"alive\":true}"));
        server.createContext("/instruments", front::instruments);
        server.createContext("/samples/", front::panel);
        server.start();
        LOG.info("laboratory listens on port " + port);
    }

    private void instruments(HttpExchange exchange) throws IOException {
        String names = panels.names().stream().map(name -> '"' + name + '"').collect(Collectors.joining(","));
        send(exchange, 200, "[" + names + "]");
    }

    private void panel(HttpExchange exchange) throws IOException {
        Matcher path = PANEL.matcher(exchange.getRequestURI().getPath());
        if (!path.matches()) {
            send(exchange, 404, "{\"error\":\"no such sample\"}");
            return;
        }
        String sample = path.group(1);
        long start = System.nanoTime();
        try {
            List<Reading> readings = panels.collect(sample);
            String body = readings.stream().map(Reading::toJson).collect(Collectors.joining(","));
            send(exchange, 200, "{\"sample\":\"" + sample + "\",\"readings\":[" + body + "]}");
        } catch (ExecutionException e) {
            LOG.log(Level.WARNING, "panel " + sample, e.getCause());
            send(exchange, 502, "{\"error\":\"instrument failed\"}");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            send(exchange, 503, "{\"error\":\"closing\"}");
        }
        long millis = (System.nanoTime() - start) / 1_000_000;
        if (millis > 3000) {
            LOG.info("panel " + sample + " took " + millis + " ms");
        }
    }

    private static void send(HttpExchange exchange, int status, String json) throws IOException {
        byte[] body = json.getBytes(StandardCharsets.UTF_8);
        exchange.getRequestBody().readAllBytes();
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }
}
