package example.granary;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** The lab that grades samples. */
final class Lab {
    private final String url;
    private final Timer timer;
    private final HttpClient client = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(2))
            .build();

    Lab(String url, MeterRegistry registry) {
        this.url = url;
        timer = Timer.builder("lab.requests").register(registry);
    }

    String grade(BigDecimal moisture) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/grade?moisture=" + moisture.toPlainString()))
                .timeout(Duration.ofSeconds(10))
                .build();
        Timer.Sample sample = Timer.start();
        try {
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IOException("lab: " + answer.statusCode());
            }
            return answer.body().strip();
        } finally {
            sample.stop(timer);
        }
    }
}
