package loans;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;

/** Stand-in for the insurer's valuation service. */
final class Insurer {
    private final Semaphore clerks;
    private final Semaphore room = new Semaphore(160);
    private final long valuationMillis;

    Insurer(int clerks, long valuationMillis) {
        this.clerks = new Semaphore(clerks, true);
        this.valuationMillis = valuationMillis;
    }

    void start(int port) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/valuations/", exchange -> {
            String object = exchange.getRequestURI().getPath().substring("/valuations/".length());
            int status = value() ? 200 : 503;
            byte[] body = "{\"object\":\"%s\",\"euros\":%d}"
                    .formatted(object, 5000 + Math.abs(object.hashCode() % 90000))
                    .getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    private boolean value() {
        if (!room.tryAcquire()) {
            return false;
        }
        try {
            clerks.acquire();
            try {
                Thread.sleep(valuationMillis);
            } finally {
                clerks.release();
            }
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } finally {
            room.release();
        }
    }
}
