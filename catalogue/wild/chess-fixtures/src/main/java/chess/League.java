package chess;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.springframework.stereotype.Component;

/** The season's players and their games, as the club secretaries reported them. */
@Component
public class League {
    static final int PLAYERS = 600;
    static final int ROUNDS = 11;

    record Player(int id, String name, String club, int rating) {}

    /** Points are doubled, so that a draw is 1. */
    record Game(int round, int white, int black, int whitePoints) {
        boolean has(int player) {
            return white == player || black == player;
        }

        int pointsOf(int player) {
            return white == player ? whitePoints : 2 - whitePoints;
        }
    }

    private final List<Player> players = new ArrayList<>();
    private final List<Game> games = new ArrayList<>();
    private final List<List<Integer>> opponents = new ArrayList<>();

    League() {
        var random = new Random(1851);
        for (int id = 0; id < PLAYERS; id++) {
            players.add(new Player(id, "Player " + id, "Club " + id % 32, 1400 + random.nextInt(900)));
            opponents.add(new ArrayList<>());
        }
        for (int round = 1; round <= ROUNDS; round++) {
            for (int board = 0; board < PLAYERS / 2; board++) {
                int white = board * 2;
                int black = (white + 2 * round * 17 + 1) % PLAYERS;
                int edge = players.get(white).rating() - players.get(black).rating() + random.nextInt(600) - 300;
                games.add(new Game(round, white, black, edge > 120 ? 2 : edge < -120 ? 0 : 1));
                opponents.get(white).add(black);
                opponents.get(black).add(white);
            }
        }
    }

    List<Player> players() {
        return players;
    }

    List<Game> games() {
        return games;
    }

    List<Integer> opponentsOf(int player) {
        return opponents.get(player);
    }

    int pointsOf(int player) {
        int points = 0;
        for (Game game : games) {
            if (game.has(player)) {
                points += game.pointsOf(player);
            }
        }
        return points;
    }
}
