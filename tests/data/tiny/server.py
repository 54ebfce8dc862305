"""A small HTTP server for tests: `server.py PORT`. Ready within a tenth of a second, one thread a connection.

`/` answers 200, `/die` ends the process, `/slow` answers after 50 ms, `/metrics` says how many requests came.
"""

import os
import socket
import sys
import threading
import time

requests = 0
lock = threading.Lock()


def serve(connection: socket.socket) -> None:
    global requests
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pending = b""
    while True:
        while b"\r\n\r\n" not in pending:
            received = connection.recv(65536)
            if not received:
                connection.close()
                return
            pending += received
        head, _, pending = pending.partition(b"\r\n\r\n")
        path = head.split(b" ", 2)[1]
        with lock:
            requests += 1
            seen = requests
        if path == b"/die":
            os._exit(7)
        if path == b"/slow":
            time.sleep(0.05)
        body = b"# TYPE requests counter\nrequests_total %d\n" % seen if path == b"/metrics" else b"ok\n"
        close = b"connection: close" in head.lower()
        connection.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s"
            % (len(body), b"Connection: close\r\n" if close else b"", body)
        )
        if close:
            connection.close()
            return


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
print("listening", flush=True)
while True:
    accepted, _ = listener.accept()
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()
