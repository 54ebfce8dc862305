package example.granary;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Streams of events, one for each silo, as the lines in which they are kept. */
final class EventStore {
    private static final int CHUNK = 256;

    private static final class Stream {
        private final List<String[]> chunks = new ArrayList<>();
        private int size;
    }

    private final Map<String, Stream> streams = new ConcurrentHashMap<>();
    private final AtomicLong size = new AtomicLong();

    void append(String silo, Event event) {
        Stream stream = streams.computeIfAbsent(silo, name -> new Stream());
        String line = event.line();
        synchronized (stream) {
            if (stream.size % CHUNK == 0) {
                stream.chunks.add(new String[CHUNK]);
            }
            stream.chunks.get(stream.size / CHUNK)[stream.size % CHUNK] = line;
            stream.size++;
        }
        size.incrementAndGet();
    }

    /** Events from that number on. They never change, so only the list of chunks is copied. */
    Iterable<String> events(String silo, int from) {
        Stream stream = streams.computeIfAbsent(silo, name -> new Stream());
        String[][] chunks;
        int end;
        synchronized (stream) {
            int first = from / CHUNK;
            end = stream.size - first * CHUNK;
            chunks = stream.chunks.subList(Math.min(first, stream.chunks.size()), stream.chunks.size())
                    .toArray(String[][]::new);
        }
        int start = from % CHUNK;
        return () -> new java.util.Iterator<>() {
            private int next = start;

            @Override
            public boolean hasNext() {
                return next < end;
            }

            @Override
            public String next() {
                String line = chunks[next / CHUNK][next % CHUNK];
                next++;
                return line;
            }
        };
    }

    double size() {
        return size.get();
    }
}
