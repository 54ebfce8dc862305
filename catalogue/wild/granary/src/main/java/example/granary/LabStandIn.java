package example.granary;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Stands in for the lab: answers each request after a while. */
final class LabStandIn {
    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(args[0]);
        long millis = Long.parseLong(args[1]);
        ScheduledExecutorService later = Executors.newScheduledThreadPool(2);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 256);
        server.createContext("/grade", exchange -> later.schedule(() -> {
            String query = exchange.getRequestURI().getQuery();
            double moisture = Double.parseDouble(query.substring(query.indexOf('=') + 1));
            byte[] grade = (moisture <= 14.5 ? "A\n" : "B\n").getBytes();
            try {
                exchange.sendResponseHeaders(200, grade.length);
                exchange.getResponseBody().write(grade);
            } catch (IOException gone) {
                // the client did not wait
            }
            exchange.close();
        }, millis, TimeUnit.MILLISECONDS));
        server.start();
    }
}
