package sso;

import org.springframework.data.jpa.repository.JpaRepository;

interface Websites extends JpaRepository<Website, Long> {

    boolean existsByUrl(String url);

    /** Compares `upper(url)`: no index serves it, so every row is looked at. */
    boolean existsByUrlIgnoreCase(String url);
}
