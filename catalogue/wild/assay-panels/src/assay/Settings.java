package assay;

/** Settings by deployment. */
record Settings(int readers, int readMillis, int requestThreads) {

    private static final int READERS = 10;
    private static final int REQUEST_THREADS = 200;

    static Settings fromEnvironment() {
        String variant = System.getenv().getOrDefault("VARIANT", "flawed");
        return switch (variant) {
            case "mended" -> new Settings(300, 40, REQUEST_THREADS);
            case "healthy" -> new Settings(400, 120, REQUEST_THREADS);
            default -> new Settings(READERS, 40, REQUEST_THREADS);
        };
    }
}
