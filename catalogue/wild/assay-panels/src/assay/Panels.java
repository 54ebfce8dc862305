package assay;

import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** Collects the panel of a sample from the instruments. */
final class Panels {

    private final List<Instrument> instruments;
    private final ExecutorService readers;

    Panels(Settings settings) {
        int millis = settings.readMillis();
        instruments = List.of(
            new Instrument("icp-oes", "lead", "mg/kg", millis),
            new Instrument("xrf-2", "gold", "g/t", millis),
            new Instrument("titrator", "chloride", "mg/l", millis),
            new Instrument("leco", "sulphur", "%", millis));
        readers = Executors.newFixedThreadPool(settings.readers(), named("reader"));
    }

    static ThreadFactory named(String prefix) {
        AtomicInteger next = new AtomicInteger();
        return work -> {
            Thread thread = new Thread(work, prefix + "-" + next.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }

    List<Reading> collect(String sample) throws InterruptedException, ExecutionException {
        List<Future<Reading>> pending = instruments.stream()
            .map(instrument -> readers.submit(() -> instrument.read(sample)))
            .collect(Collectors.toList());
        List<Reading> readings = new java.util.ArrayList<>(pending.size());
        for (Future<Reading> reading : pending) {
            readings.add(reading.get());
        }
        return readings;
    }

    List<String> names() {
        return instruments.stream().map(Instrument::name).collect(Collectors.toList());
    }
}
