package example.granary;

/** Builds a silo from its events. */
final class Replay implements Silos {
    private final EventStore store;

    Replay(EventStore store) {
        this.store = store;
    }

    @Override
    public SiloState load(String silo) {
        SiloState state = SiloState.EMPTY;
        for (String line : store.events(silo, 0)) {
            state = state.after(Event.parse(line));
        }
        return state;
    }
}
