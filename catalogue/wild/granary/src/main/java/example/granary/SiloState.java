package example.granary;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Instant;

/** A silo as its events have made it. */
record SiloState(int version, BigDecimal kg, BigDecimal water, int deliveries, Instant last, boolean isClosed) {
    static final SiloState EMPTY = new SiloState(0, BigDecimal.ZERO, BigDecimal.ZERO, 0, Instant.EPOCH, false);

    SiloState after(Event event) {
        return switch (event.type()) {
            case "delivered" -> {
                BigDecimal more = new BigDecimal(event.data().get("kg"));
                BigDecimal moisture = new BigDecimal(event.data().get("moisture"));
                yield new SiloState(version + 1, kg.add(more), water.add(more.multiply(moisture)), deliveries + 1,
                        event.at(), isClosed);
            }
            case "closed" -> new SiloState(version + 1, kg, water, deliveries, event.at(), true);
            default -> new SiloState(version + 1, kg, water, deliveries, event.at(), isClosed);
        };
    }

    BigDecimal meanMoisture() {
        return kg.signum() == 0 ? BigDecimal.ZERO : water.divide(kg, 2, RoundingMode.HALF_UP);
    }
}
