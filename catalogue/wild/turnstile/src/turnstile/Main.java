package turnstile;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;

/** Admits visitors: java turnstile.Main PORT OFFICE-URL. */
public final class Main {
    private Main() {
    }

    public static void main(String[] args) throws IOException {
        int port = Integer.parseInt(args[0]);
        boolean isMended = !"flawed".equals(System.getenv().getOrDefault("VARIANT", "flawed"));
        Metrics metrics = new Metrics();
        Office office = new Office(args[1]);
        Pages pages = new Pages(office, metrics);
        int backlog = isMended ? 1024 : 5; // 5: as in the terminal server that this one replaced
        try (ServerSocket listener = new ServerSocket(port, backlog, InetAddress.getLoopbackAddress())) {
            new Door(listener, new Gates(office), pages, metrics).open(isMended);
        }
    }
}
