package festival;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SplittableRandom;

/** The jury's marks of one class: a row for each choir, a column for each juror. */
record MarkSheet(String[] names, int[][] marks) {
    static final int JURORS = 9;

    int choirs() {
        return names.length;
    }

    static Map<String, MarkSheet> festival() {
        var sheets = new LinkedHashMap<String, MarkSheet>();
        sheets.put("mixed", drawn(560, 11));
        sheets.put("youth", drawn(540, 23));
        sheets.put("chamber", drawn(580, 37));
        return sheets;
    }

    private static MarkSheet drawn(int choirs, long seed) {
        var random = new SplittableRandom(seed);
        var names = new String[choirs];
        var marks = new int[choirs][JURORS];
        for (int c = 0; c < choirs; c++) {
            names[c] = "Choir " + (1 + c);
            int skill = 50 + random.nextInt(40);
            for (int j = 0; j < JURORS; j++) {
                marks[c][j] = Math.min(100, skill + random.nextInt(21) - 10);
            }
        }
        return new MarkSheet(names, marks);
    }
}
