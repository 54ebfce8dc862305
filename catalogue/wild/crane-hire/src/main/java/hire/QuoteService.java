package hire;

import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.SplittableRandom;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.stereotype.Service;

@Service
class QuoteService {
    private static final int SEASONS = 6_000;

    record Quote(String model, int days, LocalDate priceDay, long rentCents, long idleCents, long depositCents) {}

    /** Prices a hire over simulated seasons of demand and weather, as the underwriters of the fleet ask for. */
    @Cacheable("quotes")
    public Quote quote(String model, int days, Instant asOf) {
        LocalDate day = LocalDate.ofInstant(asOf, ZoneOffset.UTC);
        var random = new SplittableRandom(model.hashCode() * 31L + day.toEpochDay());
        double rent = 0;
        double idle = 0;
        double worst = 0;
        for (int season = 0; season < SEASONS; season++) {
            double demand = 0.6 + 0.4 * random.nextDouble();
            double lost = 0;
            for (int d = 0; d < days; d++) {
                double wind = 4.0 * Math.sqrt(-2 * Math.log(1 - random.nextDouble()));
                if (wind > 9.8) {
                    lost += Math.exp(-demand * d / days);
                }
            }
            double price = dayRate(model) * (days - 0.5 * lost) * (0.8 + 0.4 * demand);
            rent += price;
            idle += lost * dayRate(model) * 0.35;
            worst = Math.max(worst, lost);
        }
        return new Quote(
                model,
                days,
                day,
                Math.round(rent / SEASONS),
                Math.round(idle / SEASONS),
                Math.round(worst * dayRate(model) * 0.2));
    }

    private static long dayRate(String model) {
        return 45_000 + Math.floorMod(model.hashCode(), 90) * 1_000L;
    }
}
