import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/** Says which storage node keeps a gauge. */
final class Placement {
    private final int nodes;
    private final boolean byRiver;

    Placement(int nodes, boolean byRiver) {
        this.nodes = nodes;
        this.byRiver = byRiver;
    }

    int of(String gauge) {
        if (byRiver) {
            return nodeOf(gauge.substring(0, gauge.indexOf('-')));
        }
        return nodeOf(gauge);
    }

    private int nodeOf(String key) {
        CRC32 crc = new CRC32();
        crc.update(key.getBytes(StandardCharsets.UTF_8));
        return (int) (crc.getValue() % nodes);
    }
}
