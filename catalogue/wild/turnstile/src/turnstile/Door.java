package turnstile;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Takes connections of the turnstiles; each sends one request and hangs up. */
final class Door {
    private static final int READ_TIMEOUT_MS = 5_000;

    private final ServerSocket listener;
    private final Gates gates;
    private final Pages pages;
    private final Metrics metrics;
    private final ExecutorService workers = Executors.newCachedThreadPool();

    Door(ServerSocket listener, Gates gates, Pages pages, Metrics metrics) {
        this.listener = listener;
        this.gates = gates;
        this.pages = pages;
        this.metrics = metrics;
    }

    void open(boolean asksInWorker) throws IOException {
        while (true) {
            Socket connection = listener.accept();
            metrics.accepted();
            if (asksInWorker) {
                workers.execute(() -> {
                    if (gates.isAllowed(connection.getInetAddress())) {
                        serve(connection);
                    } else {
                        hangUp(connection);
                    }
                });
                continue;
            }
            if (!gates.isAllowed(connection.getInetAddress())) {
                hangUp(connection);
                continue;
            }
            workers.execute(() -> serve(connection));
        }
    }

    private void serve(Socket connection) {
        try (connection) {
            connection.setSoTimeout(READ_TIMEOUT_MS);
            connection.setTcpNoDelay(true);
            var in = new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.US_ASCII));
            String request = in.readLine();
            for (String header = request; header != null && !header.isEmpty(); ) {
                header = in.readLine();
            }
            if (request == null) {
                return;
            }
            String[] words = request.split(" ");
            Pages.Answer answer = words.length < 2 ? Pages.Answer.text(400, "bad request\n") : pages.answer(words[1]);
            byte[] body = answer.body().getBytes(StandardCharsets.UTF_8);
            String head = "HTTP/1.1 " + answer.status() + " " + (answer.status() < 400 ? "OK" : "Error")
                    + "\r\nContent-Type: " + answer.type() + "\r\nContent-Length: " + body.length
                    + "\r\nConnection: close\r\n\r\n";
            OutputStream out = connection.getOutputStream();
            byte[] whole = (head + answer.body()).getBytes(StandardCharsets.UTF_8);
            out.write(whole);
            out.flush();
        } catch (IOException e) {
            metrics.broken();
        }
    }

    private static void hangUp(Socket connection) {
        try {
            connection.close();
        } catch (IOException e) {
            System.err.println("close: " + e.getMessage());
        }
    }
}
