package festival;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Copeland's method: a choir scores for every other one that most jurors mark lower. */
final class Standings {
    record Place(int rank, String choir, double score, double average) {}

    private Standings() {}

    static List<Place> of(MarkSheet sheet) {
        int[][] marks = sheet.marks();
        int n = sheet.choirs();
        var score = new double[n];
        for (int a = 0; a < n; a++) {
            for (int b = a + 1; b < n; b++) {
                int balance = 0;
                for (int j = 0; j < MarkSheet.JURORS; j++) {
                    balance += Integer.compare(marks[a][j], marks[b][j]);
                }
                score[a] += balance > 0 ? 1 : balance == 0 ? 0.5 : 0;
                score[b] += balance < 0 ? 1 : balance == 0 ? 0.5 : 0;
            }
        }
        var order = new ArrayList<Integer>();
        for (int c = 0; c < n; c++) {
            order.add(c);
        }
        order.sort(Comparator.comparingDouble((Integer c) -> -score[c]).thenComparingDouble(c -> -average(marks[c])));
        var places = new ArrayList<Place>();
        for (int c : order) {
            places.add(new Place(places.size() + 1, sheet.names()[c], score[c], average(marks[c])));
        }
        return places;
    }

    private static double average(int[] row) {
        double sum = 0;
        for (int mark : row) {
            sum += mark;
        }
        return Math.round(100 * sum / row.length) / 100.0;
    }
}
