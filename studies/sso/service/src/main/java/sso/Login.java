package sso;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.Instant;
import java.util.UUID;

/** Somebody asked to be let in. */
@Entity
@Table(name = "login_history")
class Login {

    @Id
    @GeneratedValue(strategy = GenerationType.UUID)
    UUID id;

    long userId;
    boolean granted;
    Instant createdAt = Instant.now();

    protected Login() {}

    Login(long userId, boolean granted) {
        this.userId = userId;
        this.granted = granted;
    }
}
