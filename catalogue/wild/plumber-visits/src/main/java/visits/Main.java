package visits;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.javalin.Javalin;
import io.javalin.http.BadRequestResponse;
import io.javalin.http.Context;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

public class Main {
    private static final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

    private static int env(String name) {
        return Integer.parseInt(System.getenv(name));
    }

    private static HikariDataSource dataSource(String variant) {
        HikariConfig config = new HikariConfig();
        config.setPoolName("visits");
        config.setJdbcUrl("jdbc:postgresql://127.0.0.1:" + env("DB_PORT") + "/visits");
        config.setUsername("postgres");
        if (variant.equals("flawed")) {
            config.setMaximumPoolSize(6);
        } else {
            config.setMaximumPoolSize(140);
            config.setMinimumIdle(70);
        }
        config.setConnectionTimeout(Duration.ofSeconds(20).toMillis());
        config.setMetricRegistry(registry);
        return new HikariDataSource(config);
    }

    private static void timed(Context ctx) {
        Timer.Sample sample = ctx.attribute("sample");
        if (sample != null) {
            sample.stop(Timer.builder("http.server.requests")
                    .tag("method", ctx.method().name())
                    .tag("uri", ctx.endpointHandlerPath())
                    .tag("status", String.valueOf(ctx.statusCode()))
                    .publishPercentileHistogram()
                    .register(registry));
        }
    }

    public static void main(String[] args) {
        new JvmMemoryMetrics().bindTo(registry);
        new JvmGcMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);

        Visits visits = new Visits(dataSource(System.getenv("VARIANT")), new Traffic(env("TRAFFIC_PORT")));
        visits.createTables();

        Javalin app = Javalin.create(config -> {
            config.showJavalinBanner = false;
            config.jetty.threadPool = new QueuedThreadPool(200, 20);
        });
        app.before("/visits/*", ctx -> ctx.attribute("sample", Timer.start(registry)));
        app.after("/visits/*", Main::timed);
        app.get("/visits/next", ctx -> {
            int postcode = ctx.queryParamAsClass("postcode", Integer.class).get();
            if (postcode < 1000 || postcode > 9999) {
                throw new BadRequestResponse("postcode has four digits");
            }
            ctx.json(visits.next(postcode, ctx.queryParamAsClass("trade", String.class).getOrDefault("leak")));
        });
        app.get("/trades", ctx -> ctx.json(Visits.TRADES));
        app.get("/metrics", ctx -> ctx.contentType("text/plain; version=0.0.4").result(registry.scrape()));
        app.start("127.0.0.1", env("PORT"));
    }
}
