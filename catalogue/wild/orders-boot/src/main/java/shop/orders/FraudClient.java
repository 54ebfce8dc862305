package shop.orders;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** The fraud score comes from a partner's API, which answers after a fixed time. */
@Component
class FraudClient {
    private final long answerMs;

    FraudClient(@Value("${VARIANT:flawed}") String variant) {
        answerMs = variant.equals("healthy") ? 180 : 80;
    }

    int score(String customer, long cents) {
        try {
            Thread.sleep(answerMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while asking for the score", e);
        }
        return (int) ((customer.hashCode() & 0x7fff) % 60 + cents / 1000 % 40);
    }
}
