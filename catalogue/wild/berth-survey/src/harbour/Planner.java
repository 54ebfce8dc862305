package harbour;

/** Gives a vessel a place at a quay. */
interface Planner {
    Allocation allocate(Vessel vessel);

    int size();
}
