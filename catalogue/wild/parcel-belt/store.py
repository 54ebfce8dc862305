import queue
import random
import sqlite3

PARCELS = 20_000
STATES = ("announced", "collected", "at depot", "in transit")


class PoolExhausted(Exception):
    pass


class ConnectionPool:
    def __init__(self, path, size, timeout):
        self.size = size
        self.timeout = timeout
        self._idle = queue.Queue()
        for _ in range(size):
            conn = sqlite3.connect(path, check_same_thread=False)
            conn.row_factory = sqlite3.Row
            self._idle.put(conn)

    def acquire(self):
        try:
            return self._idle.get(timeout=self.timeout)
        except queue.Empty:
            raise PoolExhausted(f"no database connection within {self.timeout} s") from None

    def release(self, conn):
        self._idle.put(conn)

    def idle(self):
        return self._idle.qsize()


def create(path):
    rnd = random.Random(7)
    db = sqlite3.connect(path)
    db.executescript(
        """
        create table depot(id integer primary key, name text, chute integer);
        create table parcel(id integer primary key, barcode text, postcode text, weight integer, depot_id integer);
        create table scan(parcel_id integer, at integer, state text);
        create index scan_parcel on scan(parcel_id);
        """
    )
    db.executemany("insert into depot values(?,?,?)", [(i, f"Depot {i:02d}", i % 24) for i in range(1, 61)])
    db.executemany(
        "insert into parcel values(?,?,?,?,?)",
        [
            (
                i,
                f"00340{i:013d}",
                f"{rnd.randrange(1000, 99999):05d}",
                rnd.randrange(80, 31_000),
                None if rnd.random() < 0.03 else rnd.randrange(1, 61),
            )
            for i in range(1, PARCELS + 1)
        ],
    )
    db.executemany(
        "insert into scan values(?,?,?)",
        [(rnd.randrange(1, PARCELS + 1), rnd.randrange(1_700_000_000, 1_700_600_000), rnd.choice(STATES)) for _ in range(80_000)],
    )
    db.commit()
    db.close()
