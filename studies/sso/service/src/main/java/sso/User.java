package sso;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.JoinTable;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.Table;
import java.time.Instant;
import java.util.HashSet;
import java.util.Set;

@Entity
@Table(name = "users")
class User {

    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    Long id;

    String username;
    String email;
    boolean banned;
    Instant changedAt = Instant.now();

    @ManyToMany
    @JoinTable(
            name = "usergroup_user",
            joinColumns = @JoinColumn(name = "user_id"),
            inverseJoinColumns = @JoinColumn(name = "usergroup_id"))
    Set<Group> groups = new HashSet<>();

    protected User() {}

    User(String username, String email) {
        this.username = username;
        this.email = email;
    }

    void setBanned(boolean isBanned) {
        banned = isBanned;
        changedAt = Instant.now();
    }
}
