package example.granary;

import java.math.BigDecimal;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/** Something that happened to a silo. */
record Event(UUID id, Instant at, String type, Map<String, String> data) {

    static Event delivered(BigDecimal kg, BigDecimal moisture, String grade) {
        Map<String, String> data = new LinkedHashMap<>();
        data.put("kg", kg.toPlainString());
        data.put("moisture", moisture.toPlainString());
        data.put("grade", grade);
        return new Event(UUID.randomUUID(), Instant.now(), "delivered", data);
    }

    static Event step(String type, BigDecimal kg, String grade) {
        Map<String, String> data = new LinkedHashMap<>();
        data.put("kg", kg.toPlainString());
        data.put("grade", grade);
        return new Event(UUID.randomUUID(), Instant.now(), type, data);
    }

    String line() {
        StringBuilder line = new StringBuilder().append(id).append('|').append(at).append('|').append(type);
        data.forEach((key, value) -> line.append('|').append(key).append('=').append(value));
        return line.toString();
    }

    static Event parse(String line) {
        String[] fields = line.split("\\|");
        Map<String, String> data = new LinkedHashMap<>();
        for (int i = 3; i < fields.length; i++) {
            String[] pair = fields[i].split("=", 2);
            data.put(pair[0], pair[1]);
        }
        return new Event(UUID.fromString(fields[0]), Instant.parse(fields[1]), fields[2], data);
    }
}
