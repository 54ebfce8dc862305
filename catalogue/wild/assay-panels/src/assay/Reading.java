package assay;

/** What one instrument measured. */
record Reading(String instrument, String analyte, double value, String unit) {

    String toJson() {
        return "{\"instrument\":\"" + instrument + "\",\"analyte\":\"" + analyte + "\",\"value\":"
            + Math.round(value * 1000) / 1000.0 + ",\"unit\":\"" + unit + "\"}";
    }
}
