import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.ReentrantLock;

/** Small services of a JVM, each with one limit: {@code java Locked.java NAME PORT}. */
public final class Locked {
    private static final Semaphore PLACES = new Semaphore(3);
    private static final ReentrantLock LOCK = new ReentrantLock();

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[1])), 64);
        server.createContext("/", exchange -> {
            try {
                work(args[0]);
            } catch (InterruptedException e) {
                throw new java.io.IOException(e);
            }
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(args[0].equals("jvm_few_threads") ? 4 : 16));
        server.start();
    }

    private static void work(String name) throws InterruptedException {
        switch (name) {
            case "jvm_few_threads" -> call(50);
            case "jvm_monitor" -> inTurn();
            case "jvm_lock" -> {
                LOCK.lock();
                try {
                    call(20);
                } finally {
                    LOCK.unlock();
                }
            }
            case "jvm_places" -> {
                PLACES.acquire();
                try {
                    call(50);
                } finally {
                    PLACES.release();
                }
            }
            default -> throw new IllegalArgumentException(name);
        }
    }

    private static synchronized void inTurn() throws InterruptedException {
        call(20);
    }

    private static void call(long millis) throws InterruptedException {
        Thread.sleep(millis);
    }
}
