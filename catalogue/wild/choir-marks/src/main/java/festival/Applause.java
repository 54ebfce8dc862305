package festival;

import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Stand-in of the hall's applause meter. */
final class Applause {
    private Applause() {}

    static void listen(int port) throws Exception {
        var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 256);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/applause", exchange -> {
            try {
                Thread.sleep(170);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            byte[] body = "84 dB".getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
