package sso;

import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** What happens to people: each method is one transaction. */
@Service
class Accounts {

    private final Users users;
    private final Logins logins;
    private final Settings settings;

    Accounts(Users users, Logins logins, Settings settings) {
        this.users = users;
        this.logins = logins;
        this.settings = settings;
    }

    /** The index of usernames sees to it that none is given twice. */
    @Transactional
    public UserController.Made create(String username, String email) {
        User made = users.saveAndFlush(new User(username, email));
        return new UserController.Made(made.id, made.username);
    }

    /** Whoever is in the group and not banned is let in; asking is written down in either case. */
    @Transactional
    public boolean authorize(String username, String group) {
        User user = named(username);
        boolean granted = !user.banned && users.countGroups(user.id, group) > 0;
        logins.save(new Login(user.id, granted));
        return granted;
    }

    /** Whether a ban changes nothing; asked only where the study takes that short cut. */
    @Transactional(readOnly = true)
    public boolean isDone(String username) {
        return settings.shortcut() && users.existsByUsernameAndBannedTrue(username);
    }

    @Transactional
    public void ban(String username) {
        named(username).setBanned(true);
    }

    @Transactional
    public UserController.State unban(long id) {
        User user = users.findById(id).orElseThrow(() -> Refused.unknown("user"));
        user.setBanned(false);
        return new UserController.State(user.id, user.banned);
    }

    private User named(String username) {
        var found = settings.cost() == Settings.Cost.SCAN
                ? users.findByUsernameIgnoreCase(username)
                : users.findByUsername(username);
        return found.orElseThrow(() -> Refused.unknown("user"));
    }
}
