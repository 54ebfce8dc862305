package sso;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.Instant;

@Entity
@Table(name = "websites")
class Website {

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;

    long ownerId;
    String url;
    Instant createdAt = Instant.now();

    protected Website() {}

    Website(long ownerId, String url) {
        this.ownerId = ownerId;
        this.url = url;
    }
}
