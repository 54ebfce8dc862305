package freight;

/** Client of the carriers' surcharge service. */
final class Surcharges {
    private final long takesMs;

    Surcharges(long takesMs) {
        this.takesMs = takesMs;
    }

    double today(int lane) throws InterruptedException {
        Thread.sleep(takesMs); // the service's answer
        return 1.02 + (lane % 13) / 200.0;
    }
}
