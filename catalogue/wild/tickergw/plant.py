"""Stand-in of the ticker plant: answers at once."""
import socketserver
import struct
import sys


class Plant(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        while prefix := self.rfile.read(4):
            symbol = self.rfile.read(struct.unpack(">I", prefix)[0])
            price = b"%d.25" % (sum(symbol) % 300)
            self.wfile.write(struct.pack(">I", len(price)) + price)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Plant).serve_forever()
