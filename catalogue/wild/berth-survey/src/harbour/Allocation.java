package harbour;

record Allocation(long number, String quay, int fromMetre, int toMetre, double depth) {
    String json() {
        return String.format(java.util.Locale.ROOT,
            "{\"number\":%d,\"quay\":\"%s\",\"from\":%d,\"to\":%d,\"depth\":%.2f}", number, quay, fromMetre, toMetre, depth);
    }
}
