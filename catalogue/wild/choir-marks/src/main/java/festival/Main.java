package festival;

import io.javalin.Javalin;
import io.javalin.http.NotFoundResponse;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jetty.JettyServerThreadPoolMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

public final class Main {
    private static final int PORT = Integer.parseInt(System.getenv().getOrDefault("PORT", "8080"));
    private static final String VARIANT = System.getenv().getOrDefault("VARIANT", "mended");
    private static final PrometheusMeterRegistry METERS = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

    private final Map<String, MarkSheet> sheets = MarkSheet.festival();
    private final Map<String, List<Standings.Place>> published = new ConcurrentHashMap<>();
    private final HttpClient http = HttpClient.newHttpClient();

    public static void main(String[] args) throws Exception {
        Applause.listen(PORT + 1);
        new Main().start();
    }

    private void start() {
        sheets.forEach((id, sheet) -> published.put(id, Standings.of(sheet)));

        var pool = new QueuedThreadPool(250, 16);
        pool.setName("jetty");
        new JvmMemoryMetrics().bindTo(METERS);
        new JvmGcMetrics().bindTo(METERS);
        new JvmThreadMetrics().bindTo(METERS);
        new ProcessorMetrics().bindTo(METERS);

        var app = Javalin.create(config -> {
            config.showJavalinBanner = false;
            config.useVirtualThreads = false;
            config.jetty.threadPool = pool;
        });
        app.before(ctx -> ctx.attribute("timer", Timer.start(METERS)));
        app.after(ctx -> {
            Timer.Sample sample = ctx.attribute("timer");
            sample.stop(Timer.builder("http.server.requests")
                    .tag("method", ctx.method().name())
                    .tag("uri", ctx.endpointHandlerPath())
                    .tag("status", String.valueOf(ctx.statusCode()))
                    .publishPercentileHistogram()
                    .register(METERS));
        });
        app.get("/health", ctx -> ctx.result("ok"));
        app.get("/metrics", ctx -> ctx.contentType("text/plain; version=0.0.4; charset=utf-8").result(METERS.scrape()));
        app.get("/classes", ctx -> ctx.json(sheets.keySet()));
        app.get("/classes/{id}/standings", ctx -> {
            var sheet = sheets.get(ctx.pathParam("id"));
            if (sheet == null) {
                throw new NotFoundResponse("no such class");
            }
            int top = Math.min(50, ctx.queryParamAsClass("top", Integer.class).getOrDefault(10));
            var body = new HashMap<String, Object>();
            body.put("class", ctx.pathParam("id"));
            body.put("choirs", sheet.choirs());
            body.put("places", places(ctx.pathParam("id"), sheet).subList(0, top));
            if (VARIANT.equals("healthy")) {
                body.put("applause", applause(ctx.pathParam("id")));
            }
            ctx.json(body);
        });
        app.start(PORT);
        new JettyServerThreadPoolMetrics(pool, List.of()).bindTo(METERS);
    }

    private List<Standings.Place> places(String id, MarkSheet sheet) {
        if (VARIANT.equals("flawed")) {
            return Standings.of(sheet);
        }
        return published.get(id);
    }

    private String applause(String id) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + (PORT + 1) + "/applause/" + id)).build();
        return http.send(request, HttpResponse.BodyHandlers.ofString()).body();
    }
}
