package freight;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Finds the cheapest ways of a consignment. */
final class RateDesk {
    private static final int SHOWN = 10;

    private final Tariff tariff;
    private final Surcharges surcharges;
    private final int candidates;

    RateDesk(Tariff tariff, Surcharges surcharges, int candidates) {
        this.tariff = tariff;
        this.surcharges = surcharges;
        this.candidates = candidates;
    }

    List<Quote> cheapest(int from, int to, double kilos) throws InterruptedException {
        List<Quote> best = best(combine(from, to, kilos));
        double surcharge = surcharges.today(Tariff.lane(from, to));
        List<Quote> shown = new ArrayList<>(SHOWN);
        for (Quote quote : best) {
            shown.add(new Quote(quote.rate(), quote.price() * surcharge, quote.reference(), quote.co2()));
        }
        return shown;
    }

    private static List<Quote> best(List<Quote> quotes) {
        quotes.sort(Comparator.comparingDouble(Quote::price));
        return List.copyOf(quotes.subList(0, Math.min(SHOWN, quotes.size())));
    }

    /** Direct rates, and those by way of another place. */
    private List<Quote> combine(int from, int to, double kilos) {
        List<Quote> quotes = new ArrayList<>();
        for (Rate rate : tariff.rates(Tariff.lane(from, to))) {
            quotes.add(quote(rate, price(rate, kilos), from, -1, to, kilos));
        }
        for (int via = 0; via < Tariff.PLACES; via++) {
            if (via == from || via == to) {
                continue;
            }
            for (Rate first : tariff.rates(Tariff.lane(from, via))) {
                for (Rate second : tariff.rates(Tariff.lane(via, to))) {
                    if (quotes.size() >= candidates) {
                        return quotes;
                    }
                    double price = price(first, kilos) + 0.9 * price(second, kilos);
                    quotes.add(quote(second, price, from, via, to, kilos));
                }
            }
        }
        return quotes;
    }

    private static double price(Rate rate, double kilos) {
        return Math.max(rate.minimum, rate.perKilo * kilos) * rate.carrier.fuelFactor();
    }

    private static Quote quote(Rate rate, double price, int from, int via, int to, double kilos) {
        String reference = from + "/" + via + "/" + to + ":" + rate.service;
        return new Quote(rate, price, reference, kilos * 0.08 * rate.carrier.fuelFactor());
    }
}
