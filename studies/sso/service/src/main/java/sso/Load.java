package sso;

import java.io.IOException;
import java.io.InputStream;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Random;
import java.util.UUID;

/**
 * Makes the database that every trial begins with, or finds the one that was made: the last line is its file.
 *
 * <p>`Load LOGS PEOPLE FOLDER`: rows of the table of logs, people and websites of each; the same numbers give the
 * same rows. One process at a time; a file that is there is whole.
 */
final class Load {

    private static final int BATCH = 10_000;
    private static final long SAY_EVERY_NANOS = 2_000_000_000L;
    private static final OffsetDateTime FIRST =
            OffsetDateTime.ofInstant(Instant.parse("2024-01-01T00:00:00Z"), ZoneOffset.UTC);

    private Load() {}

    public static void main(String[] arguments) throws IOException, SQLException {
        long logs = Long.parseLong(arguments[0]);
        long people = Long.parseLong(arguments[1]);
        Path folder = Files.createDirectories(Path.of(arguments[2]));
        Path done = folder.resolve("logs-" + logs + "-people-" + people + ".mv.db");
        try (FileChannel lock = FileChannel.open(
                folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            lock.lock();
            if (!Files.exists(done)) {
                make(logs, people, folder, done);
            }
        }
        System.out.println(done);
    }

    private static void make(long logs, long people, Path folder, Path done) throws IOException, SQLException {
        Path half = folder.resolve("half-made");
        Path file = folder.resolve("half-made.mv.db");
        Files.deleteIfExists(file);
        String url = "jdbc:h2:file:" + half.toAbsolutePath();
        try (Connection database = DriverManager.getConnection(url, "admin", "admin")) {
            database.setAutoCommit(false);
            execute(database, schema());
            execute(database, "insert into usergroups (name) values ('members'), ('staff')");
            fill(database, "users", people, "insert into users (username, email, banned, changed_at) values (?, ?, false, ?)",
                    (row, number) -> {
                        row.setString(1, "user" + number);
                        row.setString(2, "user" + number + "@example.org");
                        row.setObject(3, FIRST);
                    });
            execute(database, "insert into usergroup_user select id, 1 from users");
            fill(database, "websites", people, "insert into websites (owner_id, url, created_at) values (?, ?, ?)",
                    (row, number) -> {
                        row.setLong(1, number);
                        row.setString(2, "https://site" + number + ".example.org/");
                        row.setObject(3, FIRST);
                    });
            Random random = new Random(1);
            fill(database, "logs", logs, "insert into logs values (?, ?, ?, ?)", (row, number) -> {
                row.setObject(1, new UUID(random.nextLong(), random.nextLong()));
                row.setLong(2, 1 + random.nextInt((int) people));
                row.setString(3, "event " + number);
                row.setObject(4, FIRST.plusSeconds(number));
            });
            System.out.println("logs: making the index");
            execute(database, "alter table logs add primary key (id)"); // sorted once, not row by row
            database.commit();
            execute(database, "shutdown");
        }
        Files.move(file, done, StandardCopyOption.ATOMIC_MOVE);
    }

    private interface Row {
        void set(PreparedStatement row, long number) throws SQLException;
    }

    private static void fill(Connection database, String table, long rows, String insert, Row each) throws SQLException {
        long said = System.nanoTime();
        try (PreparedStatement statement = database.prepareStatement(insert)) {
            for (long number = 1; number <= rows; number++) {
                each.set(statement, number);
                statement.addBatch();
                if (number % BATCH == 0 || number == rows) {
                    statement.executeBatch();
                    database.commit();
                }
                if (number == rows || (number % BATCH == 0 && System.nanoTime() - said > SAY_EVERY_NANOS)) {
                    said = System.nanoTime();
                    System.out.printf("%s: %,d of %,d rows (%d %%)%n", table, number, rows, 100 * number / rows);
                }
            }
        }
    }

    private static void execute(Connection database, String statements) throws SQLException {
        try (Statement statement = database.createStatement()) {
            statement.execute(statements);
        }
    }

    private static String schema() throws IOException {
        try (InputStream source = Load.class.getResourceAsStream("/schema.sql")) {
            return new String(source.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
