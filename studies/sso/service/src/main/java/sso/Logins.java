package sso;

import java.util.UUID;
import org.springframework.data.jpa.repository.JpaRepository;

interface Logins extends JpaRepository<Login, UUID> {}
