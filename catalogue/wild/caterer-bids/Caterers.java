import java.io.IOException;
import java.util.Map;

/** Stand-in of the caterers' price services. */
public final class Caterers {
    public static void main(String[] args) throws IOException {
        int latencyMs = System.getenv("VARIANT").equals("healthy") ? 300 : 40;
        CatererBids.listen(Integer.parseInt(System.getenv("PORT")) + 1, Map.of("/", exchange -> {
            try {
                Thread.sleep(latencyMs);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            String asked = exchange.getRequestURI().toString();
            CatererBids.send(exchange, 200, "text/plain", String.valueOf(300_000 + Math.floorMod(asked.hashCode(), 500_000)));
        }));
    }
}
