package chess;

import chess.League.Game;
import chess.League.Player;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@SpringBootApplication
@RestController
public class ChessFixtures {
    record Standing(int place, String name, String club, double points, double buchholz) {}

    record Score(Player player, int points, int buchholz) {}

    private final League league;
    private final Federation federation;
    private final IntUnaryOperator pointsOf;

    ChessFixtures(League league, Federation federation, @Value("${league.variant}") String variant) {
        this.league = league;
        this.federation = federation;
        if (variant.equals("flawed")) {
            this.pointsOf = league::pointsOf;
        } else {
            int[] points = league.players().stream().mapToInt(player -> league.pointsOf(player.id())).toArray();
            this.pointsOf = player -> points[player];
        }
    }

    public static void main(String[] args) {
        SpringApplication.run(ChessFixtures.class, args);
    }

    @GetMapping("/players/{id}")
    Map<String, Object> player(@PathVariable int id) throws IOException, InterruptedException {
        if (id < 0 || id >= League.PLAYERS) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }
        Player player = league.players().get(id);
        return Map.of("player", player, "bulletin", federation.bulletin());
    }

    @GetMapping("/rounds/{round}")
    Map<String, Object> round(@PathVariable int round) throws IOException, InterruptedException {
        List<Game> games = league.games().stream().filter(game -> game.round() == round).limit(20).toList();
        return Map.of("round", round, "games", games, "bulletin", federation.bulletin());
    }

    @GetMapping("/standings")
    Map<String, Object> standings() throws IOException, InterruptedException {
        List<Score> scores = league.players().stream()
                .map(player -> new Score(player, pointsOf.applyAsInt(player.id()), buchholz(player.id())))
                .sorted(Comparator.comparingInt(Score::points).thenComparingInt(Score::buchholz).reversed())
                .limit(25)
                .toList();
        var table = scores.stream()
                .map(score -> new Standing(scores.indexOf(score) + 1, score.player().name(), score.player().club(),
                        score.points() / 2.0, score.buchholz() / 2.0))
                .toList();
        return Map.of("standings", table, "bulletin", federation.bulletin());
    }

    /** The tie-break: the sum of the points of all opponents. */
    private int buchholz(int player) {
        int sum = 0;
        for (int opponent : league.opponentsOf(player)) {
            sum += pointsOf.applyAsInt(opponent);
        }
        return sum;
    }
}
