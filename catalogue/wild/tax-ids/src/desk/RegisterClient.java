package desk;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** The register of the member states. */
final class RegisterClient {
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(2)).build();
    private final URI base;

    RegisterClient(URI base) {
        this.base = base;
    }

    String holder(String number) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(base.resolve("/holders/" + number)).timeout(Duration.ofSeconds(10)).build();
        HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IOException("register answers " + response.statusCode());
        }
        return response.body();
    }
}
