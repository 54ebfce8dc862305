package desk;

import com.sun.net.httpserver.Filter;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;

/** Refuses what is beyond the caller's plan. */
final class PlanFilter extends Filter {
    private final Plans plans;

    PlanFilter(Plans plans) {
        this.plans = plans;
    }

    @Override
    public void doFilter(HttpExchange exchange, Chain chain) throws IOException {
        if (plans.bucketOf(exchange.getRequestHeaders()).take()) {
            chain.doFilter(exchange);
            return;
        }
        exchange.getResponseHeaders().set("Retry-After", "1");
        VatDesk.answer(exchange, 429, "{\"error\":\"plan exhausted\"}");
    }

    @Override
    public String description() {
        return "plans";
    }
}
