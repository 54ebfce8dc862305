package loans;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;

/** Asks the insurer what an object is worth. */
final class InsurerClient {
    record Policy(int attempts, Duration perAttempt) {}

    private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(2))
            .build();
    private final String base;
    private final Policy policy;
    private final MeterRegistry registry;

    InsurerClient(String base, Policy policy, MeterRegistry registry) {
        this.base = base;
        this.policy = policy;
        this.registry = registry;
    }

    String valuation(String object) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + "/valuations/" + object))
                .timeout(policy.perAttempt())
                .build();
        IOException last = null;
        for (int attempt = 1; attempt <= policy.attempts(); attempt++) {
            Timer.Sample sample = Timer.start(registry);
            String outcome = "IO_ERROR";
            try {
                HttpResponse<String> response = http.send(request, BodyHandlers.ofString());
                outcome = String.valueOf(response.statusCode());
                if (response.statusCode() == 200) {
                    return response.body();
                }
                last = new IOException("insurer answered " + response.statusCode());
            } catch (IOException e) {
                last = e;
            } finally {
                sample.stop(Timer.builder("http.client.requests")
                        .tag("client.name", "insurer").tag("method", "GET")
                        .tag("uri", "/valuations/{object}").tag("status", outcome)
                        .register(registry));
            }
        }
        throw last;
    }
}
