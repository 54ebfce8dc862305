package router;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.jvm.ExecutorServiceMetrics;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Each shard of the store takes a few requests at a time; the store's client allows no more. */
final class Shards {
    private final List<ExecutorService> clients = new ArrayList<>();
    private final boolean byInitial;

    Shards(int count, int places, boolean byInitial, MeterRegistry registry) {
        this.byInitial = byInitial;
        for (int i = 0; i < count; i++) {
            ExecutorService pool = Executors.newFixedThreadPool(places);
            clients.add(ExecutorServiceMetrics.monitor(registry, pool, "shard-" + i));
        }
    }

    ExecutorService of(String tenant) {
        int key = byInitial ? Character.toLowerCase(tenant.charAt(0)) - 'a' : spread(tenant);
        return clients.get(Math.floorMod(key, clients.size()));
    }

    private static int spread(String tenant) {
        int hash = 0x811c9dc5;
        for (int i = 0; i < tenant.length(); i++) {
            hash = (hash ^ tenant.charAt(i)) * 0x01000193;
        }
        return hash ^ hash >>> 15;
    }
}
