"""Fill the local copy of the week's scans."""

import random
import sqlite3

from board.settings import DEPOTS, load

LANES = [f"{a}{n:02d}" for a in "ABCDE" for n in range(1, 13)]
SCANS_PER_DEPOT = {"flawed": 78_000, "mended": 78_000, "healthy": 9_000}


def main() -> None:
    settings = load()
    rng = random.Random(20)
    count = SCANS_PER_DEPOT[settings.variant]
    with sqlite3.connect(settings.database) as db:
        db.execute("pragma journal_mode = wal")
        db.execute(
            "create table scans (id integer primary key, depot text, lane text, pallet integer, kilos real, late_min integer)"
        )
        for depot in DEPOTS:
            db.executemany(
                "insert into scans (depot, lane, pallet, kilos, late_min) values (?, ?, ?, ?, ?)",
                (
                    (depot, rng.choice(LANES), rng.randrange(40_000), rng.random() * 900, max(0, int(rng.gauss(4, 9))))
                    for _ in range(count)
                ),
            )
        db.execute("create index scans_depot on scans (depot)")
    db.close()


if __name__ == "__main__":
    main()
