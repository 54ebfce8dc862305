import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Semaphore;

/** One bidder at a time per lot. */
interface TurnTaking {
    void enter(Bidder bidder) throws InterruptedException;

    void leave();
}

/** A bidder's standing decides who goes first when several wait. */
record Bidder(long number) {
    double standing() {
        double score = 0;
        for (int age = 1; age <= 3000; age++) { // each purchase, the newest weigh most
            score += Math.sqrt((number * 31 + age) % 977) / age;
        }
        return score;
    }
}

/** Lets the waiting bidder with the best standing go next. */
final class RankedTurns implements TurnTaking {
    private final List<Bidder> waiting = new ArrayList<>();
    private boolean taken;

    @Override
    public synchronized void enter(Bidder bidder) throws InterruptedException {
        waiting.add(bidder);
        while (taken || best() != bidder) {
            wait();
        }
        waiting.remove(bidder);
        taken = true;
    }

    private Bidder best() {
        Bidder best = waiting.get(0);
        for (Bidder other : waiting) {
            if (other.standing() > best.standing()) {
                best = other;
            }
        }
        return best;
    }

    @Override
    public synchronized void leave() {
        taken = false;
        notifyAll();
    }
}

/** First come, first served; a leaving bidder wakes exactly one. */
final class QueuedTurns implements TurnTaking {
    private final Deque<Semaphore> line = new ArrayDeque<>();
    private boolean taken;

    @Override
    public void enter(Bidder bidder) throws InterruptedException {
        Semaphore turn;
        synchronized (this) {
            if (!taken) {
                taken = true;
                return;
            }
            turn = new Semaphore(0);
            line.addLast(turn);
        }
        turn.acquire();
    }

    @Override
    public synchronized void leave() {
        Semaphore next = line.pollFirst();
        if (next == null) {
            taken = false;
        } else {
            next.release();
        }
    }
}
