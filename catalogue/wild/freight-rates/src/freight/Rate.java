package freight;

/** One row of the tariff. */
final class Rate {
    final int lane;
    final Carrier carrier;
    final Double perKilo;
    final Double minimum;
    final String service;

    Rate(int lane, Carrier carrier, double perKilo, double minimum, String service) {
        this.lane = lane;
        this.carrier = carrier;
        this.perKilo = perKilo;
        this.minimum = minimum;
        this.service = service;
    }
}
