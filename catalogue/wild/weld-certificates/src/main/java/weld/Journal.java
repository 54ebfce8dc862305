package weld;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;

/** The journal of issued certificates: a number counts as issued once its entry is on the disk. */
final class Journal implements AutoCloseable {
    private static final List<String> VOLUMES = List.of("primary", "mirror");
    private static final int SLOTS = 16_384;
    private static final int SLOT_BYTES = 256;

    private record Entry(String text, CompletableFuture<Long> number) {}

    /** The entries on one volume, and the register of the latest, from which the inspector's readers are served. */
    private record Copy(FileChannel entries, FileChannel register) {
        static Copy in(Path volume) throws IOException {
            return new Copy(open(volume.resolve("certificates.journal")), open(volume.resolve("certificates.register")));
        }

        private static FileChannel open(Path file) throws IOException {
            return FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        }

        void write(byte[] lines, ByteBuffer page) throws IOException {
            writeFully(entries, ByteBuffer.wrap(lines));
            entries.force(true);
            register.position(0);
            writeFully(register, page);
            register.force(true);
        }

        private static void writeFully(FileChannel channel, ByteBuffer bytes) throws IOException {
            while (bytes.hasRemaining()) {
                channel.write(bytes);
            }
        }
    }

    private final BlockingQueue<Entry> queue = new LinkedBlockingQueue<>();
    private final List<Copy> copies = new ArrayList<>();
    private final ByteBuffer register = ByteBuffer.allocateDirect(SLOTS * SLOT_BYTES);
    private final int batchSize;
    private final Thread writer;
    private long last = 48_000;

    Journal(Path folder, int batchSize) throws IOException {
        for (var volume : VOLUMES) {
            copies.add(Copy.in(Files.createDirectories(folder.resolve(volume))));
        }
        this.batchSize = batchSize;
        writer = new Thread(this::run, "journal");
        writer.setDaemon(true);
        writer.start();
    }

    /** Completes with the number of the certificate. */
    CompletableFuture<Long> append(String text) {
        var number = new CompletableFuture<Long>();
        queue.add(new Entry(text, number));
        return number;
    }

    private void run() {
        var batch = new ArrayList<Entry>();
        try {
            while (true) {
                batch.add(queue.take());
                queue.drainTo(batch, batchSize - 1);
                try {
                    long first = write(batch);
                    for (int i = 0; i < batch.size(); i++) {
                        batch.get(i).number().complete(first + i);
                    }
                } catch (IOException e) {
                    batch.forEach(entry -> entry.number().completeExceptionally(e));
                }
                batch.clear();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private long write(List<Entry> batch) throws IOException {
        long first = last + 1;
        var lines = new StringBuilder();
        for (int i = 0; i < batch.size(); i++) {
            var text = batch.get(i).text();
            lines.append(first + i).append(' ').append(text).append('\n');
            int slot = (int) ((first + i) % SLOTS) * SLOT_BYTES;
            register.putLong(slot, first + i);
            register.put(slot + Long.BYTES, text.getBytes(StandardCharsets.UTF_8));
        }
        last += batch.size();
        var bytes = lines.toString().getBytes(StandardCharsets.UTF_8);
        for (var copy : copies) {
            copy.write(bytes, register.duplicate().clear());
        }
        return first;
    }

    @Override
    public void close() throws IOException {
        writer.interrupt();
        for (var copy : copies) {
            copy.entries().close();
            copy.register().close();
        }
    }
}
