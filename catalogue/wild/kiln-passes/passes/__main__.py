"""Serve firing passes: python -m passes PORT."""

import logging
import sys
from http.server import ThreadingHTTPServer

from .config import load
from .handler import PassHandler, PersistentPassHandler
from .meter import Meter
from .signer import Signers


class PassServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    config = load()
    handler = PassHandler if config.variant == "flawed" else PersistentPassHandler
    handler.meter = Meter(*config.meter_ms)
    handler.signers = Signers(config)
    port = int(sys.argv[1])
    with PassServer(("127.0.0.1", port), handler) as server:
        logging.getLogger("passes").info("passes of %s on port %d", config.works, port)
        server.serve_forever()


if __name__ == "__main__":
    main()
