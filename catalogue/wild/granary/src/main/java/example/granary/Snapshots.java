package example.granary;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Builds a silo from its last snapshot and the events since. */
final class Snapshots implements Silos {
    private static final int EVERY = 100;

    private final EventStore store;
    private final Map<String, SiloState> taken = new ConcurrentHashMap<>();

    Snapshots(EventStore store) {
        this.store = store;
    }

    @Override
    public SiloState load(String silo) {
        SiloState from = taken.getOrDefault(silo, SiloState.EMPTY);
        SiloState state = from;
        for (String line : store.events(silo, from.version())) {
            state = state.after(Event.parse(line));
        }
        if (state.version() - from.version() >= EVERY) {
            taken.merge(silo, state, (old, now) -> now.version() > old.version() ? now : old);
        }
        return state;
    }
}
