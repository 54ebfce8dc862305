package loans;

import io.javalin.Javalin;
import io.javalin.http.Context;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.time.Duration;
import java.time.LocalDate;
import loans.InsurerClient.Policy;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** Loan sheets for objects that travel to other museums. */
public final class App {
    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final InsurerClient insurer;

    private App(InsurerClient.Policy policy, int insurerPort) {
        insurer = new InsurerClient("http://127.0.0.1:" + insurerPort, policy, registry);
        new JvmMemoryMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);
    }

    private void sheet(Context ctx) throws InterruptedException {
        String object = ctx.pathParam("object");
        try {
            String valuation = insurer.valuation(object);
            ctx.contentType("application/json").result(
                    "{\"object\":\"%s\",\"courier\":%b,\"until\":\"%s\",\"valuation\":%s}".formatted(
                            object, object.startsWith("p"), LocalDate.now().plusMonths(4), valuation));
        } catch (IOException e) {
            ctx.status(502).contentType("application/json").result("{\"error\":\"no valuation\"}");
        }
    }

    private void timed(Context ctx, Timer.Sample sample) {
        sample.stop(Timer.builder("http.server.requests")
                .tag("method", ctx.method().name()).tag("uri", ctx.endpointHandlerPath())
                .tag("status", String.valueOf(ctx.statusCode()))
                .publishPercentileHistogram(false)
                .serviceLevelObjectives(Duration.ofMillis(50), Duration.ofMillis(100), Duration.ofMillis(250),
                        Duration.ofMillis(500), Duration.ofSeconds(1), Duration.ofSeconds(2))
                .register(registry));
    }

    private void start(int port) {
        Javalin.create(config -> {
                    config.showJavalinBanner = false;
                    config.jetty.threadPool = new QueuedThreadPool(250, 16);
                })
                .before(ctx -> ctx.attribute("sample", Timer.start(registry)))
                .after(ctx -> timed(ctx, ctx.attribute("sample")))
                .get("/loans/{object}", this::sheet)
                .get("/health", ctx -> ctx.result("up"))
                .get("/metrics", ctx -> ctx.contentType("text/plain; version=0.0.4").result(registry.scrape()))
                .start("127.0.0.1", port);
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(System.getenv("PORT"));
        String variant = System.getenv().getOrDefault("VARIANT", "flawed");
        Insurer stub = variant.equals("healthy") ? new Insurer(400, 140) : new Insurer(10, 50);
        Policy policy = switch (variant) {
            case "mended" -> new Policy(1, Duration.ofMillis(1000));
            case "healthy" -> new Policy(2, Duration.ofMillis(2000));
            default -> new Policy(4, Duration.ofMillis(250));
        };
        stub.start(port + 1);
        new App(policy, port + 1).start(port);
    }
}
