import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Quotes for the branch offices, with the day's book of positions. */
public class BranchQuotes {
    static final String VARIANT = System.getenv().getOrDefault("VARIANT", "flawed");

    /** The day's position per pair; written by every quote. */
    static class Book {
        private final Map<String, Long> position = new TreeMap<>();
        private final Bank bank;

        Book(Bank bank) {
            this.bank = bank;
        }

        synchronized double quoteAndBook(String pair, long units) throws IOException, InterruptedException {
            double rate = bank.rate(pair);
            position.merge(pair, units, Long::sum);
            return rate;
        }

        double quoteThenBook(String pair, long units) throws IOException, InterruptedException {
            double rate = bank.rate(pair);
            synchronized (this) {
                position.merge(pair, units, Long::sum);
            }
            return rate;
        }
    }

    /** Client of the bank's rate service. */
    static class Bank {
        private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        private final URI base;

        Bank(int port) {
            base = URI.create("http://127.0.0.1:" + port + "/");
        }

        double rate(String pair) throws IOException, InterruptedException {
            HttpRequest request = HttpRequest.newBuilder(base.resolve(pair)).timeout(java.time.Duration.ofSeconds(30)).build();
            return Double.parseDouble(http.send(request, HttpResponse.BodyHandlers.ofString()).body());
        }
    }

    /** Stand-in for the bank: answers any number of requests, each after a fixed time. */
    static int startBank(long ms) throws IOException {
        ScheduledExecutorService later = Executors.newScheduledThreadPool(1);
        HttpServer bank = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 256);
        bank.createContext("/", exchange -> later.schedule(() -> {
            String pair = exchange.getRequestURI().getPath().substring(1);
            respond(exchange, 200, String.valueOf(1 + (pair.hashCode() & 255) / 1000.0));
            return null;
        }, ms, TimeUnit.MILLISECONDS));
        bank.setExecutor(Executors.newFixedThreadPool(2));
        bank.start();
        return bank.getAddress().getPort();
    }

    static void respond(HttpExchange exchange, int status, String text) throws IOException {
        exchange.sendResponseHeaders(status, text.length());
        exchange.getResponseBody().write(text.getBytes());
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        long bankMs = VARIANT.equals("healthy") ? 80 : 40;
        Book book = new Book(new Bank(startBank(bankMs)));
        HttpServer desk = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 256);
        desk.createContext("/quote/", exchange -> {
            String pair = exchange.getRequestURI().getPath().replaceFirst("/quote/", "");
            try {
                Thread.sleep(100); // the branch's limit, from head office
                double rate = VARIANT.equals("flawed") ? book.quoteAndBook(pair, 100) : book.quoteThenBook(pair, 100);
                respond(exchange, 200, pair + " " + rate + "\n");
            } catch (Exception e) {
                respond(exchange, 502, e + "\n");
            }
        });
        desk.setExecutor(Executors.newCachedThreadPool());
        desk.start();
    }
}
