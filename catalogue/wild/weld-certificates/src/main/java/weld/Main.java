package weld;

import io.javalin.Javalin;
import io.javalin.http.Context;
import io.javalin.http.NotFoundResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Certificates of welds of pipelines: checked by class, stamped with a trusted time, and journalled. */
public final class Main {
    private static final Map<String, Double> LARGEST_PORE_MM = Map.of("B", 2.0, "C", 3.0, "D", 4.0);

    record Certificate(long number, String weld, String quality, double largestPoreMm, String stampedAt) {}

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final URI stampUri;
    private final Journal journal;

    private Main(URI stampUri, Journal journal) {
        this.stampUri = stampUri;
        this.journal = journal;
    }

    private CompletableFuture<String> trustedTime() {
        var request = HttpRequest.newBuilder(stampUri).timeout(Duration.ofSeconds(10)).build();
        return client.sendAsync(request, HttpResponse.BodyHandlers.ofString()).thenApply(answer -> {
            if (answer.statusCode() != 200) {
                throw new IllegalStateException("the time stamp authority answered " + answer.statusCode());
            }
            return answer.body();
        });
    }

    private void issue(Context ctx) {
        var weld = ctx.pathParam("weld").toUpperCase();
        if (weld.length() > 40) {
            throw new NotFoundResponse("no such weld");
        }
        var quality = ctx.queryParamAsClass("quality", String.class).getOrDefault("C").toUpperCase();
        var pore = LARGEST_PORE_MM.get(quality);
        if (pore == null) {
            throw new NotFoundResponse("no quality " + quality);
        }
        ctx.future(() -> trustedTime()
                .thenCompose(time -> journal.append(weld + ' ' + quality + ' ' + time)
                        .thenApply(number -> new Certificate(number, weld, quality, pore, time)))
                .thenAccept(ctx::json));
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        var variant = System.getenv("VARIANT");
        if (args.length > 0 && args[0].equals("authority")) {
            TimeStampAuthority.serve(port + 1, variant.equals("healthy") ? 400 : 10);
            return;
        }
        var folder = Files.createDirectories(Path.of(System.getenv("TMPDIR"), "journal"));
        int batchSize = variant.equals("flawed") ? 1 : 512;
        var journal = new Journal(folder, batchSize);
        var main = new Main(URI.create("http://127.0.0.1:" + (port + 1) + "/time"), journal);

        Javalin.create(config -> config.showJavalinBanner = false)
                .get("/health", ctx -> ctx.result("up"))
                .get("/certificates/{weld}", main::issue)
                .start("127.0.0.1", port);
    }
}
