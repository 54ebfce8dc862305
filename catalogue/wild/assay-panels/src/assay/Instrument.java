package assay;

/** An instrument on the laboratory's network. */
final class Instrument {

    private final String name;
    private final String analyte;
    private final String unit;
    private final int millis;

    Instrument(String name, String analyte, String unit, int millis) {
        this.name = name;
        this.analyte = analyte;
        this.unit = unit;
        this.millis = millis;
    }

    String name() {
        return name;
    }

    Reading read(String sample) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("read of " + name + " was interrupted", e);
        }
        double value = Math.floorMod((sample + analyte).hashCode(), 100_000) / 137.0;
        return new Reading(name, analyte, value, unit);
    }
}
