package hire;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@RestController
class QuoteController {
    private final QuoteService quotes;
    private final String variant;
    private final String telematics;
    private final HttpClient http = HttpClient.newHttpClient();

    QuoteController(
            QuoteService quotes,
            @Value("${hire.variant}") String variant,
            @Value("${hire.telematics}") String telematics) {
        this.quotes = quotes;
        this.variant = variant;
        this.telematics = telematics;
    }

    record Offer(QuoteService.Quote quote, String haulage) {}

    @GetMapping("/cranes/{model}/quote")
    Offer quote(
            @PathVariable String model,
            @RequestParam(defaultValue = "14") int days,
            @RequestParam(required = false) Instant asOf) {
        if (days < 1 || days > 180) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST, "1 to 180 days");
        }
        Instant moment = asOf != null ? asOf : priceMoment();
        return new Offer(quotes.quote(model, days, moment), haulage(model));
    }

    private Instant priceMoment() {
        if (variant.equals("flawed")) {
            return Instant.now();
        }
        return Instant.now().truncatedTo(ChronoUnit.DAYS);
    }

    private String haulage(String model) {
        if (!variant.equals("healthy")) {
            return "ex yard";
        }
        var request = HttpRequest.newBuilder(URI.create(telematics + "/yards/" + model)).build();
        try {
            return http.send(request, HttpResponse.BodyHandlers.ofString()).body();
        } catch (java.io.IOException e) {
            throw new ResponseStatusException(HttpStatus.BAD_GATEWAY, "telematics", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE);
        }
    }
}
