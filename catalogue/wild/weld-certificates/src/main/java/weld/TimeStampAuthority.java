package weld;

import io.javalin.Javalin;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Stand-in of the authority that signs times. */
final class TimeStampAuthority {
    private TimeStampAuthority() {}

    static void serve(int port, long delayMs) {
        Javalin.create(config -> config.showJavalinBanner = false)
                .get("/time", ctx -> ctx.future(() -> {
                    var later = CompletableFuture.delayedExecutor(delayMs, TimeUnit.MILLISECONDS);
                    return CompletableFuture.runAsync(() -> ctx.result(Instant.now().toString()), later);
                }))
                .start("127.0.0.1", port);
    }
}
