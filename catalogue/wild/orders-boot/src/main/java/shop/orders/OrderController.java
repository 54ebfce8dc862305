package shop.orders;

import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/orders")
class OrderController {
    record Order(int id, String customer, long cents) {}

    private final JdbcTemplate jdbc;
    private final TransactionTemplate transactions;
    private final FraudClient fraud;
    private final boolean oneTransaction;

    OrderController(JdbcTemplate jdbc, TransactionTemplate transactions, FraudClient fraud, @Value("${VARIANT:flawed}") String variant) {
        this.jdbc = jdbc;
        this.transactions = transactions;
        this.fraud = fraud;
        this.oneTransaction = variant.equals("flawed");
    }

    @GetMapping("/{id}/check")
    Map<String, Object> check(@PathVariable int id) {
        int score = oneTransaction ? transactions.execute(status -> checkInside(id)) : checkOutside(id);
        return Map.of("order", id, "score", score, "release", score < 80);
    }

    private int checkInside(int id) {
        Order order = load(id);
        int score = fraud.score(order.customer(), order.cents());
        mark(id);
        return score;
    }

    private int checkOutside(int id) {
        Order order = load(id);
        int score = fraud.score(order.customer(), order.cents());
        transactions.executeWithoutResult(status -> mark(id));
        return score;
    }

    private Order load(int id) {
        return jdbc.queryForObject(
                "SELECT id, customer, cents FROM orders WHERE id = ?",
                (row, n) -> new Order(row.getInt(1), row.getString(2), row.getLong(3)),
                id);
    }

    private void mark(int id) {
        jdbc.update("INSERT INTO checks (order_id) VALUES (?)", id);
    }
}
