package no.fjord.invoice;

import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@SpringBootApplication
public class InvoiceApplication {
    public static void main(String[] args) {
        SpringApplication.run(InvoiceApplication.class, args);
    }
}

@Service
class Totals {
    private final Invoices invoices;
    private final String variant;

    Totals(Invoices invoices, @Value("${VARIANT:flawed}") String variant) {
        this.invoices = invoices;
        this.variant = variant;
    }

    @Transactional(readOnly = true)
    public long of(int id) {
        if (variant.equals("healthy")) {
            return invoices.findById(id).map(i -> i.id * 1999L).orElseThrow(Totals::missing);
        }
        if (variant.equals("mended")) {
            return invoices.sumOfLines(id).orElseThrow(Totals::missing);
        }
        var invoice = invoices.findById(id).orElseThrow(Totals::missing);
        long cents = 0;
        for (Line line : invoice.lines) {
            cents += (long) line.pieces * line.product.getCents();
        }
        return cents;
    }

    private static ResponseStatusException missing() {
        return new ResponseStatusException(HttpStatus.NOT_FOUND, "no such invoice");
    }
}

@RestController
class InvoiceController {
    private final Totals totals;
    private final long taxMs;

    InvoiceController(Totals totals, @Value("${VARIANT:flawed}") String variant) {
        this.totals = totals;
        this.taxMs = variant.equals("healthy") ? 360 : 300;
    }

    @GetMapping("/invoices/{id}")
    Map<String, Object> show(@PathVariable int id) throws InterruptedException {
        long net = totals.of(id);
        Thread.sleep(taxMs); // the tax office's rate service
        return Map.of("id", id, "net", net, "tax", net * 25 / 100);
    }
}
