package desk;

/** A token bucket that is filled up when it is asked. */
final class TokenBucket {
    private final double perNano;
    private final int burst;
    private double tokens;
    private long filledAt = System.nanoTime();

    TokenBucket(int perSecond, int burst) {
        this.perNano = perSecond / 1e9;
        this.burst = burst;
        this.tokens = burst;
    }

    synchronized boolean take() {
        long now = System.nanoTime();
        tokens = Math.min(burst, tokens + (now - filledAt) * perNano);
        filledAt = now;
        if (tokens < 1) {
            return false;
        }
        tokens -= 1;
        return true;
    }
}
