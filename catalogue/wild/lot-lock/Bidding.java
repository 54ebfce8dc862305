import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** Auction house: GET /lots/17/bid places the next bid on a lot. */
public class Bidding {
    static final String VARIANT = System.getenv().getOrDefault("VARIANT", "flawed");

    record Receipt(long lot, long amount) {}

    private final ConcurrentHashMap<Long, TurnTaking> turns = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<Long, Long> highest = new ConcurrentHashMap<>();
    private final AtomicLong bidders = new AtomicLong();

    Receipt bid(long lot) throws InterruptedException {
        long bidder = bidders.incrementAndGet();
        Thread.sleep(VARIANT.equals("healthy") ? 190 : 120); // credit check at the bank
        if (VARIANT.equals("healthy")) {
            return new Receipt(lot, highest.merge(lot, 50L, Long::sum));
        }
        TurnTaking turn = turns.computeIfAbsent(lot, id -> VARIANT.equals("flawed") ? new RankedTurns() : new QueuedTurns());
        turn.enter(new Bidder(bidder));
        try {
            Thread.sleep(0, 900_000); // the hammer: a remote clerk confirms each raise
            return new Receipt(lot, highest.merge(lot, 50L, Long::sum));
        } finally {
            turn.leave();
        }
    }

    public static void main(String[] args) throws Exception {
        Bidding house = new Bidding();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 256);
        server.setExecutor(Executors.newFixedThreadPool(200));
        server.createContext("/lots/", exchange -> {
            String[] parts = exchange.getRequestURI().getPath().split("/");
            int status = 200;
            String text;
            try {
                Receipt receipt = house.bid(Long.parseLong(parts[2]));
                text = "lot " + receipt.lot() + " stands at " + receipt.amount() + "\n";
            } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
                status = 404;
                text = "no such lot\n";
            } catch (InterruptedException e) {
                status = 503;
                text = "closing\n";
            }
            exchange.sendResponseHeaders(status, text.length());
            exchange.getResponseBody().write(text.getBytes());
            exchange.close();
        });
        server.start();
    }
}
