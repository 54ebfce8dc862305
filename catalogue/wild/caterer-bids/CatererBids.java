import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/** Asks three caterers for the price of a wedding menu and answers with their bids, lowest first. */
public final class CatererBids {
    private static final String VARIANT = System.getenv("VARIANT");
    private static final int PORT = Integer.parseInt(System.getenv("PORT"));
    private static final List<String> CATERERS = List.of("lindenhof", "petit-sel", "osteria-blu");
    private static final int MAX_BIDDERS = 480;

    private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(2))
            .build();
    private final ThreadPoolExecutor bidders = bidders();
    private final Map<Integer, Timer> answers = Map.of(200, new Timer(), 400, new Timer(), 502, new Timer());
    private final Timer asks = new Timer();

    record Bid(String caterer, int cents) {}

    record Timer(LongAdder count, LongAdder nanos) {
        Timer() {
            this(new LongAdder(), new LongAdder());
        }

        void record(long began) {
            count.increment();
            nanos.add(System.nanoTime() - began);
        }

        void write(StringBuilder text, String name, String labels) {
            text.append(name).append("_count{").append(labels).append("} ").append(count.sum()).append('\n');
            text.append(name).append("_sum{").append(labels).append("} ").append(nanos.sum() / 1e9).append('\n');
        }
    }

    private static ThreadPoolExecutor bidders() {
        if (VARIANT.equals("flawed")) {
            return new ThreadPoolExecutor(12, MAX_BIDDERS, 60, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        }
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                MAX_BIDDERS, MAX_BIDDERS, 60, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    private Bid ask(String caterer, int guests, String menu) {
        long began = System.nanoTime();
        URI uri = URI.create("http://127.0.0.1:" + (PORT + 1) + "/" + caterer + "/price?guests=" + guests + "&menu=" + menu);
        HttpRequest request = HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(5)).build();
        try {
            String price = http.send(request, HttpResponse.BodyHandlers.ofString()).body();
            return new Bid(caterer, Integer.parseInt(price.trim()));
        } catch (IOException | NumberFormatException e) {
            throw new CompletionException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CompletionException(e);
        } finally {
            asks.record(began);
        }
    }

    private void bids(HttpExchange exchange) throws IOException {
        long began = System.nanoTime();
        int status = 200;
        String body;
        try {
            Map<String, String> query = query(exchange);
            int guests = Integer.parseInt(query.getOrDefault("guests", "80"));
            String menu = query.getOrDefault("menu", "garden");
            List<CompletableFuture<Bid>> asked = new ArrayList<>();
            for (String caterer : CATERERS) {
                asked.add(CompletableFuture.supplyAsync(() -> ask(caterer, guests, menu), bidders));
            }
            body = json(asked.stream().map(CompletableFuture::join).sorted(Comparator.comparingInt(Bid::cents)).toList());
        } catch (NumberFormatException e) {
            status = 400;
            body = "{\"error\":\"guests is not a number\"}";
        } catch (CompletionException e) {
            status = 502;
            body = "{\"error\":\"a caterer did not answer\"}";
        }
        answers.get(status).record(began);
        send(exchange, status, "application/json", body);
    }

    private static String json(List<Bid> bids) {
        StringBuilder text = new StringBuilder("{\"bids\":[");
        for (Bid bid : bids) {
            if (text.charAt(text.length() - 1) == '}') {
                text.append(',');
            }
            text.append("{\"caterer\":\"").append(bid.caterer()).append("\",\"cents\":").append(bid.cents()).append('}');
        }
        return text.append("]}").toString();
    }

    private void metrics(HttpExchange exchange) throws IOException {
        StringBuilder text = new StringBuilder();
        text.append("# TYPE http_server_requests_seconds summary\n");
        answers.forEach((status, timer) -> timer.write(
                text, "http_server_requests_seconds", "method=\"GET\",uri=\"/bids\",status=\"" + status + "\""));
        text.append("# TYPE http_client_requests_seconds summary\n");
        asks.write(text, "http_client_requests_seconds", "client_name=\"caterers\"");
        gauge(text, "executor_active_threads", bidders.getActiveCount());
        gauge(text, "executor_queued_tasks", bidders.getQueue().size());
        gauge(text, "executor_pool_size_threads", bidders.getPoolSize());
        gauge(text, "executor_pool_core_threads", bidders.getCorePoolSize());
        gauge(text, "executor_pool_max_threads", bidders.getMaximumPoolSize());
        text.append("# TYPE executor_completed_tasks_total counter\n");
        text.append("executor_completed_tasks_total{name=\"bidders\"} ").append(bidders.getCompletedTaskCount()).append('\n');
        text.append("# TYPE jvm_threads_live_threads gauge\n");
        text.append("jvm_threads_live_threads ").append(ManagementFactory.getThreadMXBean().getThreadCount()).append('\n');
        send(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", text.toString());
    }

    private static void gauge(StringBuilder text, String name, long value) {
        text.append("# TYPE ").append(name).append(" gauge\n");
        text.append(name).append("{name=\"bidders\"} ").append(value).append('\n');
    }

    private static Map<String, String> query(HttpExchange exchange) {
        Map<String, String> found = new HashMap<>();
        String raw = exchange.getRequestURI().getQuery();
        for (String pair : raw == null ? new String[0] : raw.split("&")) {
            String[] parts = pair.split("=", 2);
            found.put(parts[0], parts.length == 2 ? parts[1] : "");
        }
        return found;
    }

    static void send(HttpExchange exchange, int status, String type, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, bytes.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(bytes);
        }
    }

    static void listen(int port, Map<String, HttpHandler> routes) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        routes.forEach(server::createContext);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }

    public static void main(String[] args) throws IOException {
        CatererBids service = new CatererBids();
        listen(PORT, Map.of(
                "/bids", service::bids,
                "/metrics", service::metrics,
                "/health", exchange -> send(exchange, 200, "application/json", "{\"status\":\"UP\"}")));
    }
}
