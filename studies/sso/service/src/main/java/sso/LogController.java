package sso;

import java.util.UUID;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/api/v1/logs")
class LogController {

    record NewLog(Long userId, String event) {}

    record Made(UUID id) {}

    private final Logs logs;

    LogController(Logs logs) {
        this.logs = logs;
    }

    @PostMapping("/")
    @ResponseStatus(HttpStatus.CREATED)
    Made create(@RequestBody NewLog body) {
        long userId = Refused.unlessNumber("userId", body.userId());
        return new Made(logs.save(new Log(userId, Refused.unlessText("event", body.event(), 255))).id);
    }
}
