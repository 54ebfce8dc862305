package sso;

import org.springframework.http.HttpStatus;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
@RequestMapping("/api/v1/websites")
class WebsiteController {

    record NewWebsite(Long ownerId, String url) {}

    record Made(long id, String url) {}

    private final Websites websites;
    private final Section section;
    private final Settings settings;
    private final TransactionTemplate transaction;

    WebsiteController(Websites websites, Section section, Settings settings, TransactionTemplate transaction) {
        this.websites = websites;
        this.section = section;
        this.settings = settings;
        this.transaction = transaction;
    }

    @PostMapping("/")
    @ResponseStatus(HttpStatus.CREATED)
    Made create(@RequestBody NewWebsite body) {
        long ownerId = Refused.unlessNumber("ownerId", body.ownerId());
        String url = Refused.unlessText("url", body.url(), 255);
        section.pass();
        Website made = transaction.execute(status -> {
            if (isTaken(url)) {
                throw new Refused(HttpStatus.CONFLICT, "the address is registered");
            }
            return websites.saveAndFlush(new Website(ownerId, url));
        });
        return new Made(made.id, made.url);
    }

    private boolean isTaken(String url) {
        return settings.cost() == Settings.Cost.SCAN ? websites.existsByUrlIgnoreCase(url) : websites.existsByUrl(url);
    }
}
