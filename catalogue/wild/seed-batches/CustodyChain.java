import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The links of one batch: each hand-over of seed from a grower to a cleaner, a store, a merchant. */
final class CustodyChain {
    private static final String[] HOLDERS = {"grower", "cleaner", "store", "haulier", "merchant"};

    final String batch;
    final List<byte[]> links = new ArrayList<>();

    CustodyChain(String batch, int size) {
        this.batch = batch;
        for (int i = 0; i < size; i++) {
            String holder = HOLDERS[i % HOLDERS.length] + "-" + (i * 37 % 211);
            links.add((batch + "|" + i + "|" + holder + "|" + (25_000 - i % 40) + "kg").getBytes(StandardCharsets.UTF_8));
        }
    }
}
