package visits;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import javax.sql.DataSource;

/** Finds the plumber who can come first: the end of the last job, plus the drive. */
class Visits {
    static final List<String> TRADES = List.of("leak", "boiler", "drain");

    record Offer(String plumber, String trade, int freeInMinutes, int driveMinutes, int arrivesInMinutes) {}

    private final DataSource pool;
    private final Traffic traffic;

    Visits(DataSource pool, Traffic traffic) {
        this.pool = pool;
        this.traffic = traffic;
    }

    void createTables() {
        try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
            statement.execute("create table plumber (id serial primary key, name text, trade text, postcode int, free_in int)");
            statement.execute("""
                    insert into plumber (name, trade, postcode, free_in)
                    select 'Plumber ' || n, (array['leak', 'boiler', 'drain'])[1 + n % 3], 1000 + n * 37 % 9000, n * 13 % 240
                    from generate_series(1, 240) n""");
            statement.execute("create table enquiry (id bigserial primary key, plumber int, postcode int, at timestamptz default now())");
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    Offer next(int postcode, String trade) throws Exception {
        try (Connection connection = pool.getConnection()) {
            try (PreparedStatement nearest = connection.prepareStatement(
                    "select id, name, postcode, free_in from plumber where trade = ? order by abs(postcode - ?) + free_in * 9 limit 1")) {
                nearest.setString(1, trade);
                nearest.setInt(2, postcode);
                try (ResultSet row = nearest.executeQuery()) {
                    if (!row.next()) {
                        throw new IllegalArgumentException("no plumber for " + trade);
                    }
                    int drive = traffic.minutes(row.getInt("postcode"), postcode);
                    int free = row.getInt("free_in");
                    enquire(connection, row.getInt("id"), postcode);
                    return new Offer(row.getString("name"), trade, free, drive, free + drive);
                }
            }
        }
    }

    private void enquire(Connection connection, int plumber, int postcode) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into enquiry (plumber, postcode) values (?, ?)")) {
            insert.setInt(1, plumber);
            insert.setInt(2, postcode);
            insert.executeUpdate();
        }
    }
}
