"""Scripts of wrk: the script is run for a second against a listener of our own, which keeps what arrives."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from loadlens.draft import Draft, Request, origin_of, path_of
from loadlens.errors import UsageError

_MOST: Final = 20  # requests that are kept


class _Listener(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: the load ends by closing its connections."""


def _why(output: str) -> str:
    return output.strip().partition("\n")[0].removeprefix("loadlens: ")


def read(script: Path, url: str) -> Draft:
    """The first requests that the script makes; one if all are the same.

    Args:
        script: The file.
        url: What wrk would be given.

    Raises:
        UsageError: The script sends nothing.
    """
    kept: list[Request] = []
    origin = origin_of(url)

    class Keeper(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode("utf-8", "replace")
            if len(kept) < _MOST:
                headers = tuple(self.headers.items())
                kept.append(Request(self.command, f"{origin}{self.path}", headers, body or None))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    with _Listener(("127.0.0.1", 0), Keeper) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        target = f"http://127.0.0.1:{server.server_port}{path_of(url)}"
        words = [sys.executable, "-m", "loadlens", "wrk", "-t1", "-c1", "-d1s", "-s", str(script), target]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        server.shutdown()
    if not kept:
        raise UsageError(
            f"the script sent no request: {_why(done.stderr or done.stdout)}",
            where=str(script),
            hint=f"loadlens wrk -d1s -s {shlex.quote(str(script))} {shlex.quote(url)}",
        )
    different = list(dict.fromkeys(kept))
    if len(different) == 1:
        return Draft((different[0],), (), str(script))
    left_out = (
        f"what the script computes: these are its first {len(different)} requests; "
        "{{int 1 100}}, {{uuid}} and feeds vary values"
    )
    return Draft(tuple(different[:5]), (left_out,), str(script))
