package visits;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/** Client of the traffic service. */
class Traffic {
    private final String base;

    Traffic(int port) {
        this.base = "http://127.0.0.1:" + port;
        System.setProperty("http.maxConnections", "256");
    }

    int minutes(int from, int to) throws IOException {
        URI uri = URI.create(base + "/drive?from=" + from + "&to=" + to);
        HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();
        connection.setConnectTimeout(2_000);
        connection.setReadTimeout(10_000);
        try (var body = connection.getInputStream()) {
            return Integer.parseInt(new String(body.readAllBytes(), StandardCharsets.UTF_8));
        }
    }
}
