package soil;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

/** Tells farmers how much lime a parcel of land needs, from the class that the soil survey gives it. */
public final class SoilSurveys {
    record Soil(String texture, int depthCm, double acidity) {}

    static final class SurveyFailed extends RuntimeException {
        SurveyFailed(String reason) {
            super(reason);
        }
    }

    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Map<String, Soil> known = new ConcurrentHashMap<>();
    private final String variant;
    private final String apiKey;
    private final URI survey;

    private SoilSurveys(String variant, int port) {
        this.variant = variant;
        this.apiKey = variant.equals("healthy") ? "county-0093" : "parish-4471";
        this.survey = URI.create("http://127.0.0.1:" + port + "/v3/classify/");
        new JvmMemoryMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new JvmGcMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        new SurveyOffice().start(port + 1);
        var surveys = new SoilSurveys(System.getenv("VARIANT"), port + 1);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(256));
        server.createContext("/parcels/", surveys::parcel);
        server.createContext("/health", exchange -> send(exchange, 200, "{\"status\":\"UP\"}", "application/json"));
        server.createContext("/actuator/prometheus",
                exchange -> send(exchange, 200, surveys.registry.scrape(), "text/plain; version=0.0.4"));
        server.start();
    }

    private void parcel(HttpExchange exchange) throws IOException {
        long start = System.nanoTime();
        String parcel = exchange.getRequestURI().getPath().substring("/parcels/".length());
        int status = 200;
        String body;
        try {
            Soil soil = soilOf(parcel);
            double lime = Math.max(0, 6.8 - soil.acidity()) * soil.depthCm() / 10;
            body = String.format(Locale.ROOT,
                    "{\"parcel\":\"%s\",\"texture\":\"%s\",\"depthCm\":%d,\"acidity\":%.1f,\"limeTonnesPerHectare\":%.2f}",
                    parcel, soil.texture(), soil.depthCm(), soil.acidity(), lime);
        } catch (SurveyFailed failure) {
            status = 503;
            body = "{\"parcel\":\"" + parcel + "\",\"error\":\"" + failure.getMessage() + "\"}";
        }
        record("http.server.requests", "/parcels/{parcel}", status, start);
        send(exchange, status, body, "application/json");
    }

    private Soil soilOf(String parcel) {
        if (variant.equals("mended")) {
            return known.computeIfAbsent(parcel, this::classify);
        }
        return classify(parcel);
    }

    private Soil classify(String parcel) {
        long start = System.nanoTime();
        var request = HttpRequest.newBuilder(survey.resolve(parcel))
                .header("X-Api-Key", apiKey)
                .timeout(Duration.ofSeconds(10))
                .build();
        try {
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            record("http.client.requests", "/v3/classify/{parcel}", answer.statusCode(), start);
            if (answer.statusCode() != 200) {
                throw new SurveyFailed("soil survey: " + answer.body());
            }
            String[] fields = answer.body().split(";");
            return new Soil(fields[0], Integer.parseInt(fields[1]), Double.parseDouble(fields[2]));
        } catch (IOException broken) {
            throw new SurveyFailed("soil survey: " + broken.getMessage());
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new SurveyFailed("interrupted");
        }
    }

    private void record(String name, String uri, int status, long start) {
        Timer.builder(name)
                .tags("method", "GET", "uri", uri, "status", String.valueOf(status))
                .publishPercentileHistogram()
                .register(registry)
                .record(Duration.ofNanos(System.nanoTime() - start));
    }

    private static void send(HttpExchange exchange, int status, String body, String type) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }
}
