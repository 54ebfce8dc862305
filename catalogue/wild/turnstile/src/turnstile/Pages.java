package turnstile;

import java.io.IOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the server answers to a path. */
final class Pages {
    record Answer(int status, String type, String body) {
        static Answer text(int status, String body) {
            return new Answer(status, "text/plain; version=0.0.4; charset=utf-8", body);
        }

        static Answer json(int status, String body) {
            return new Answer(status, "application/json", body);
        }
    }

    private static final Pattern ADMIT = Pattern.compile("/tickets/(\\d+)/admit");

    private final Office office;
    private final Metrics metrics;

    Pages(Office office, Metrics metrics) {
        this.office = office;
        this.metrics = metrics;
    }

    Answer answer(String path) {
        if (path.equals("/metrics")) {
            return Answer.text(200, metrics.exposition());
        }
        Matcher admit = ADMIT.matcher(path);
        if (!admit.matches()) {
            return Answer.text(404, "not found\n");
        }
        long start = System.nanoTime();
        Answer answer = admit(admit.group(1));
        metrics.served("/tickets/{id}/admit", answer.status(), (System.nanoTime() - start) / 1e9);
        return answer;
    }

    private Answer admit(String ticket) {
        try {
            String block = office.ask("/tickets/" + ticket);
            return Answer.json(200, "{\"ticket\":" + ticket + ",\"admitted\":true,\"block\":\"" + block + "\"}\n");
        } catch (IOException e) {
            return Answer.json(503, "{\"error\":\"the office does not answer\"}\n");
        }
    }
}
