package harbour;

record Vessel(String callSign, int length, double draught) {
    static Vessel parse(java.util.Map<String, String> query) {
        int length = Integer.parseInt(query.getOrDefault("length", "120"));
        double draught = Double.parseDouble(query.getOrDefault("draught", "6"));
        if (length < 10 || length > 400 || draught <= 0 || draught > 20) {
            throw new IllegalArgumentException("no such vessel: " + length + " m, draught " + draught);
        }
        return new Vessel(query.getOrDefault("call", "MV-" + length), length, draught);
    }
}
