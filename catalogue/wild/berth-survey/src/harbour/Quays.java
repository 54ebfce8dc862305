package harbour;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;

/** The quays and who lies where; not safe for threads. */
final class Quays {
    static final String[] NAMES = {"Elbe", "Weser", "Ems", "Oder", "Eider"};
    private static final int METRES = 1200;
    private static final int KEPT = 200;

    private final Map<String, Integer> nextMetre = new LinkedHashMap<>();
    private final Deque<Allocation> recent = new ArrayDeque<>();
    private long number;
    private int turn;

    Quays() {
        for (String name : NAMES) {
            nextMetre.put(name, 0);
        }
    }

    String propose() {
        turn = (turn + 1) % NAMES.length;
        return NAMES[turn];
    }

    Allocation place(String quay, Vessel vessel, double depth) {
        int from = nextMetre.get(quay);
        if (from + vessel.length() > METRES) {
            from = 0;
        }
        nextMetre.put(quay, from + vessel.length() + 15);
        Allocation given = new Allocation(++number, quay, from, from + vessel.length(), depth);
        recent.addLast(given);
        if (recent.size() > KEPT) {
            recent.removeFirst();
        }
        return given;
    }

    int size() {
        return recent.size();
    }
}
