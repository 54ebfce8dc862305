package harbour;

import java.util.concurrent.ThreadLocalRandom;

/** Client of the hydrographic survey, which knows today's depth at each quay. */
final class SurveyClient {
    private final int fastestMs;
    private final int slowestMs;

    SurveyClient(int fastestMs, int slowestMs) {
        this.fastestMs = fastestMs;
        this.slowestMs = slowestMs;
    }

    double depthAt(String quay) {
        pause(ThreadLocalRandom.current().nextLong(fastestMs * 1_000_000L, slowestMs * 1_000_000L));
        return 8.0 + (quay.hashCode() & 7) * 0.75;
    }

    static void pause(long nanos) {
        try {
            Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted", e);
        }
    }
}
