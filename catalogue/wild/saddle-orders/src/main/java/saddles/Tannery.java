package saddles;

import java.math.BigDecimal;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.web.client.RestTemplateBuilder;
import org.springframework.stereotype.Component;
import org.springframework.web.client.RestTemplate;

/** Client of the tannery, which sets hides aside for us. */
@Component
class Tannery {
    private final RestTemplate http;

    Tannery(RestTemplateBuilder builder, @Value("${tannery.url}") String url) {
        this.http = builder.rootUri(url).build();
    }

    String reserve(String grade, BigDecimal feet) {
        return http.getForObject("/reserve?grade={grade}&feet={feet}", String.class, grade, feet);
    }
}
