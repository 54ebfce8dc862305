package board;

import io.prometheus.client.Summary;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;

/** The operators' feed of what really runs. */
final class FeedClient {
    private static final Summary CALLS =
            Summary.build().name("feed_request_seconds").help("Time of calls to the feed").register();

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final URI base;

    FeedClient(URI base) {
        this.base = base;
    }

    List<String> departures(String stop) throws FeedException {
        var request = HttpRequest.newBuilder(base.resolve("/feed/" + stop)).timeout(Duration.ofSeconds(5)).build();
        try (var timer = CALLS.startTimer()) {
            HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new FeedException("feed answers " + response.statusCode());
            }
            return response.body().lines().map(FeedClient::row).toList();
        } catch (IOException e) {
            throw new FeedException(e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FeedException("interrupted");
        }
    }

    /** From the feed's semicolons: line;destination;planned;late. */
    private static String row(String text) {
        String[] cells = text.split(";");
        return "{\"line\":\"%s\",\"to\":\"%s\",\"planned\":\"%s\",\"late\":%s}".formatted((Object[]) cells);
    }

    static final class FeedException extends Exception {
        private static final long serialVersionUID = 1;

        FeedException(String message) {
            super(message);
        }
    }
}
