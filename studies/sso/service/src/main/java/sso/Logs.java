package sso;

import java.util.UUID;
import org.springframework.data.jpa.repository.JpaRepository;

interface Logs extends JpaRepository<Log, UUID> {}
