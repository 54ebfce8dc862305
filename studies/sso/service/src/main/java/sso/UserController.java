package sso;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/api/v1/users")
class UserController {

    record NewUser(String username, String email) {}

    record Made(long id, String username) {}

    record Entrance(String username, String group) {}

    record Authorized(boolean authorized) {}

    record Named(String username) {}

    record Numbered(Long id) {}

    record State(long id, boolean banned) {}

    private final Accounts accounts;
    private final Section section;

    UserController(Accounts accounts, Section section) {
        this.accounts = accounts;
        this.section = section;
    }

    @PostMapping("/")
    @ResponseStatus(HttpStatus.CREATED)
    Made create(@RequestBody NewUser body) {
        String username = Refused.unlessText("username", body.username(), 64);
        return accounts.create(username, Refused.unlessText("email", body.email(), 128));
    }

    @PostMapping("/authorize")
    ResponseEntity<Authorized> authorize(@RequestBody Entrance body) {
        String username = Refused.unlessText("username", body.username(), 64);
        String group = Refused.unlessText("group", body.group(), 64);
        section.pass();
        boolean granted = accounts.authorize(username, group);
        return ResponseEntity.status(granted ? HttpStatus.OK : HttpStatus.FORBIDDEN).body(new Authorized(granted));
    }

    @PostMapping("/ban")
    Named ban(@RequestBody Named body) {
        String username = Refused.unlessText("username", body.username(), 64);
        if (!accounts.isDone(username)) {
            section.pass();
            accounts.ban(username);
        }
        return body;
    }

    @PostMapping("/unban")
    State unban(@RequestBody Numbered body) {
        return accounts.unban(Refused.unlessNumber("id", body.id()));
    }
}
