package freight;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** The rates of all carriers, by lane. */
final class Tariff {
    static final int PLACES = 80;
    private static final String[] SERVICES = {"economy", "standard", "express", "overnight"};

    private final Map<Integer, List<Rate>> byLane = new HashMap<>();
    private final List<Carrier> carriers = new ArrayList<>();
    private int rows;

    static Tariff load(int carrierCount, int ratesPerLane) {
        Tariff tariff = new Tariff();
        Random random = new Random(20260311);
        for (int id = 0; id < carrierCount; id++) {
            tariff.carriers.add(new Carrier(id, "Carrier " + id, 1.0 + random.nextInt(30) / 100.0));
        }
        for (int lane = 0; lane < PLACES * PLACES; lane++) {
            List<Rate> rates = new ArrayList<>(ratesPerLane);
            for (int i = 0; i < ratesPerLane; i++) {
                Carrier carrier = tariff.carriers.get(random.nextInt(carrierCount));
                double perKilo = 0.2 + random.nextDouble();
                String service = SERVICES[i % SERVICES.length] + "-" + carrier.id();
                rates.add(new Rate(lane, carrier, perKilo, 10 + random.nextInt(60), service));
            }
            tariff.byLane.put(lane, rates);
            tariff.rows += ratesPerLane;
        }
        return tariff;
    }

    static int lane(int from, int to) {
        return from * PLACES + to;
    }

    List<Rate> rates(int lane) {
        return byLane.getOrDefault(lane, List.of());
    }

    List<Carrier> carriers() {
        return carriers;
    }

    int rows() {
        return rows;
    }
}
