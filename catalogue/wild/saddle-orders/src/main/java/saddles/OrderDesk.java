package saddles;

import java.math.BigDecimal;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Service;
import org.springframework.transaction.support.TransactionTemplate;

/** Takes leather from the stock of a grade and books the order of the saddle. */
@Service
class OrderDesk {
    record Placed(long order, String grade, BigDecimal squareFeet, String reservation, BigDecimal left) {}

    private final JdbcClient db;
    private final TransactionTemplate transaction;
    private final Tannery tannery;
    private final String variant;

    OrderDesk(JdbcClient db, TransactionTemplate transaction, Tannery tannery, @Value("${VARIANT:mended}") String variant) {
        this.db = db;
        this.transaction = transaction;
        this.tannery = tannery;
        this.variant = variant;
    }

    Placed place(String grade, BigDecimal feet) {
        if (variant.equals("flawed")) {
            return transaction.execute(status -> {
                BigDecimal left = take(grade, feet);
                String reservation = tannery.reserve(grade, feet);
                return new Placed(book(grade, feet, reservation), grade, feet, reservation, left);
            });
        }
        String reserved = tannery.reserve(grade, feet);
        return takeAndBook(grade, feet, reserved);
    }

    private BigDecimal take(String grade, BigDecimal feet) {
        return db.sql("update hide set square_feet = square_feet - ? where grade = ? returning square_feet")
                .params(feet, grade)
                .query(BigDecimal.class)
                .single();
    }

    private Placed takeAndBook(String grade, BigDecimal feet, String reservation) {
        return db.sql("""
                        with placed as (
                          insert into saddle_order (grade, square_feet, reservation) values (:grade, :feet, :reservation)
                          returning id
                        )
                        update hide set square_feet = hide.square_feet - :feet from placed where hide.grade = :grade
                        returning placed.id, hide.square_feet""")
                .param("grade", grade)
                .param("feet", feet)
                .param("reservation", reservation)
                .query((row, n) -> new Placed(row.getLong(1), grade, feet, reservation, row.getBigDecimal(2)))
                .single();
    }

    private long book(String grade, BigDecimal feet, String reservation) {
        return db.sql("insert into saddle_order (grade, square_feet, reservation) values (?, ?, ?) returning id")
                .params(grade, feet, reservation)
                .query(Long.class)
                .single();
    }
}
