package com.acme.shop;

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Four threads answer requests, and each request sleeps: the threads are the limit. */
public class Pool {
    static byte[] query() throws InterruptedException {
        Thread.sleep(50); // asleep
        return "[]".getBytes();
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 1024);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            try {
                boolean isKnown = exchange.getRequestURI().getPath().equals("/");
                byte[] body = isKnown ? query() : new byte[0];
                exchange.sendResponseHeaders(isKnown ? 200 : 404, body.length > 0 ? body.length : -1);
                exchange.getResponseBody().write(body);
            } catch (InterruptedException fault) {
                Thread.currentThread().interrupt();
            }
            exchange.close();
        });
        server.start();
    }
}
