package sso;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Component;

/** How many rows each table has, so that a trial can see what it begins with: `/actuator/rows`. */
@Component
@Endpoint(id = "rows")
class Rows {

    private static final List<String> TABLES =
            List.of("users", "usergroups", "usergroup_user", "websites", "login_history", "logs");
    private final JdbcTemplate database;

    Rows(JdbcTemplate database) {
        this.database = database;
    }

    @ReadOperation
    Map<String, Long> count() {
        Map<String, Long> found = new LinkedHashMap<>();
        for (String table : TABLES) {
            found.put(table, database.queryForObject("select count(*) from " + table, Long.class));
        }
        found.put("banned", database.queryForObject("select count(*) from users where banned", Long.class));
        return found;
    }
}
