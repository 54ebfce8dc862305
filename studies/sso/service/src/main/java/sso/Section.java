package sso;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.springframework.stereotype.Component;

/** The section that one request at a time goes through, where the study asks for one. */
@Component
class Section {

    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();
    private final ReentrantLock lock = new ReentrantLock();
    private final Settings settings;
    private final long longestWaitNanos;

    Section(Settings settings) {
        this.settings = settings;
        longestWaitNanos = settings.timeout().isZero() ? Long.MAX_VALUE : settings.timeout().toNanos();
    }

    /** Waits for its turn, then computes; a request whose turn does not come in time is given up. */
    void pass() {
        if (settings.cost() != Settings.Cost.SERIALISED) {
            return;
        }
        try {
            if (!lock.tryLock(longestWaitNanos, TimeUnit.NANOSECONDS)) {
                throw Refused.late();
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw Refused.late();
        }
        try {
            compute(settings.section().toNanos());
        } finally {
            lock.unlock();
        }
    }

    /** Digests until this thread has had so much of a core, however fast the compiled code is by then. */
    private static void compute(long cpuNanos) {
        MessageDigest digest = sha256();
        byte[] state = new byte[32];
        long until = CLOCK.getCurrentThreadCpuTime() + cpuNanos;
        do {
            state = digest.digest(state);
        } while (CLOCK.getCurrentThreadCpuTime() < until);
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible); // every Java has it
        }
    }
}
