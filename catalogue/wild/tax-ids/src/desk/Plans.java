package desk;

import com.sun.net.httpserver.Headers;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Finds the plan and the bucket of a caller. */
final class Plans {
    private static final Map<String, Plan> BY_KEY = Map.of(
            "k-7f31c0", Plan.BUSINESS,
            "k-90be42", Plan.BUSINESS);

    private final Map<String, TokenBucket> buckets = new ConcurrentHashMap<>();
    private final boolean internalPlan;

    Plans(String variant) {
        internalPlan = !variant.equals("flawed");
    }

    TokenBucket bucketOf(Headers headers) {
        String key = headers.getFirst("X-Api-Key");
        Plan plan = planOf(key);
        return buckets.computeIfAbsent(key == null ? plan.name() : key, k -> new TokenBucket(plan.perSecond, plan.burst));
    }

    private Plan planOf(String key) {
        if (key == null && internalPlan) {
            return Plan.INTERNAL;  // the gateway lets nobody through from outside without a key
        }
        if (key != null && BY_KEY.containsKey(key)) {
            return BY_KEY.get(key);
        }
        return Plan.TRIAL;
    }
}
