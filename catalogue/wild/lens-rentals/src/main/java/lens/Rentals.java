package lens;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.metrics.micrometer.MicrometerMetricsTrackerFactory;
import io.javalin.Javalin;
import io.javalin.http.Context;
import io.javalin.http.NotFoundResponse;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** The counter's view of a lens: what it costs a day, how often it was out, and whether it is out now. */
public final class Rentals {
    private static final String LENS = "SELECT model, day_rate FROM lens WHERE serial = ?";
    private static final String HISTORY =
            "SELECT count(*), count(*) FILTER (WHERE returned_on IS NULL), max(taken_on) FROM rental WHERE upper(lens_serial) = ?";

    private final HikariDataSource database;
    private final PrometheusMeterRegistry registry;
    private final long courierMs;

    private Rentals(HikariDataSource database, PrometheusMeterRegistry registry, long courierMs) {
        this.database = database;
        this.registry = registry;
        this.courierMs = courierMs;
    }

    public static void main(String[] args) {
        int port = Integer.parseInt(System.getenv("PORT"));
        var registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        new JvmMemoryMetrics().bindTo(registry);
        new JvmThreadMetrics().bindTo(registry);
        new JvmGcMetrics().bindTo(registry);
        new ProcessorMetrics().bindTo(registry);

        var config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://127.0.0.1:" + (port + 1) + "/postgres?user=lens");
        config.setMaximumPoolSize(30);
        config.setPoolName("rentals");
        config.setMetricsTrackerFactory(new MicrometerMetricsTrackerFactory(registry));

        long courierMs = "healthy".equals(System.getenv("VARIANT")) ? 200 : 0;
        var rentals = new Rentals(new HikariDataSource(config), registry, courierMs);
        Javalin.create(settings -> settings.showJavalinBanner = false)
                .get("/lenses/{serial}", rentals::show)
                .get("/health", context -> context.result("up"))
                .get("/metrics", context -> context.contentType("text/plain; version=0.0.4").result(registry.scrape()))
                .start("127.0.0.1", port);
    }

    private void show(Context context) throws Exception {
        long start = System.nanoTime();
        var lens = find(context.pathParam("serial"));
        if (courierMs > 0) {
            lens.put("courier", Courier.nextPickup(courierMs));
        }
        context.json(lens);
        Timer.builder("http.server.requests")
                .tags("method", "GET", "uri", "/lenses/{serial}", "status", "200")
                .publishPercentileHistogram()
                .register(registry)
                .record(Duration.ofNanos(System.nanoTime() - start));
    }

    private Map<String, Object> find(String serial) throws SQLException {
        var lens = new LinkedHashMap<String, Object>();
        try (Connection connection = database.getConnection()) {
            try (var statement = connection.prepareStatement(LENS)) {
                statement.setString(1, serial);
                var row = statement.executeQuery();
                if (!row.next()) {
                    throw new NotFoundResponse("no lens " + serial);
                }
                BigDecimal rate = row.getBigDecimal(2);
                lens.put("serial", serial);
                lens.put("model", row.getString(1));
                lens.put("dayRate", rate);
                lens.put("weekRate", rate.multiply(BigDecimal.valueOf(5)));
            }
            try (var statement = connection.prepareStatement(HISTORY)) {
                statement.setString(1, serial.toUpperCase());
                var row = statement.executeQuery();
                row.next();
                lens.put("rentals", row.getInt(1));
                lens.put("isOut", row.getInt(2) > 0);
                lens.put("lastTaken", String.valueOf(row.getDate(3)));
            }
        }
        return lens;
    }

    /** The courier's booking desk, which quotes the next pick-up. */
    private static final class Courier {
        static String nextPickup(long latencyMs) throws InterruptedException {
            Thread.sleep(latencyMs);
            return "tomorrow 09:30";
        }
    }
}
