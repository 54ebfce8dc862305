"""Where the log lines of the service go."""

import logging
import logging.handlers
import os
import queue

PORT = int(os.environ["PORT"])


class Batches(logging.handlers.MemoryHandler):
    """Sends up to 500 records as one."""

    def flush(self) -> None:
        with self.lock:
            if self.buffer and self.target:
                last = self.buffer[-1]
                last.msg = "\n".join(record.getMessage() for record in self.buffer)
                last.args = ()
                self.target.handle(last)
            self.buffer.clear()


def set_up() -> logging.Logger:
    log = logging.getLogger("notices")
    log.setLevel(logging.INFO)
    log.propagate = False
    collector = logging.handlers.HTTPHandler(f"127.0.0.1:{PORT + 3}", "/records", method="POST")
    if os.environ.get("VARIANT", "mended") == "flawed":
        log.addHandler(collector)
        return log
    lines: queue.SimpleQueue = queue.SimpleQueue()
    log.addHandler(logging.handlers.QueueHandler(lines))
    batches = Batches(500, flushLevel=logging.ERROR, target=collector)
    logging.handlers.QueueListener(lines, batches).start()
    return log
