package sso;

import java.util.Optional;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;

interface Users extends JpaRepository<User, Long> {

    Optional<User> findByUsername(String username);

    /** Compares `upper(username)`: no index serves it, so every row is looked at. */
    Optional<User> findByUsernameIgnoreCase(String username);

    boolean existsByUsernameAndBannedTrue(String username);

    @Query("select count(g) from User u join u.groups g where u.id = :id and g.name = :name")
    long countGroups(long id, String name);
}
