package sso;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.Instant;
import java.util.UUID;

@Entity
@Table(name = "logs")
class Log {

    @Id
    @GeneratedValue(strategy = GenerationType.UUID)
    UUID id;

    long userId;
    String event;
    Instant createdAt = Instant.now();

    protected Log() {}

    Log(long userId, String event) {
        this.userId = userId;
        this.event = event;
    }
}
