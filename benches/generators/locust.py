"""locust: Python, gevent; FastHttpUser, its quickest."""

from __future__ import annotations

import csv
from pathlib import Path

from benches.generators.base import CannotDo, Generator, ReportedTimes, Scene, asked, on_path, refuse_rate
from benches.works import Work

PREFIX = "locust"
RANDOM = "{'a': randint(1, 100), 'b': randint(1, 100)}"
CALLS = {
    "get": "self.client.get('/')",
    "post": f"self.client.post('/', json={RANDOM})",
    "flow": f"""\
made = self.client.post('/items', json={RANDOM}).json()
        item = f"/items/{{made['data']['id']}}"
        self.client.get(item, name='get')
        self.client.put(item, json={RANDOM}, name='update')
        self.client.get('/items')
        self.client.delete(item, name='delete')""",
}


def command(work: Work, scene: Scene) -> list[str]:
    refuse_rate(work)
    if work.is_fresh:
        raise CannotDo("keeps its connections")
    if work.is_tls and work.connections > 1:
        raise CannotDo("reads its certificates anew for each user, which takes longer than a run")
    script = scene.file(
        f"locust_{work.kind}.py",
        "from random import randint\n\n"
        "from locust import FastHttpUser, constant, task\n\n\n"
        "class User(FastHttpUser):\n"
        "    wait_time = constant(0)\n"
        "    insecure = True\n\n"
        "    @task\n"
        "    def ask(self):\n"
        f"        {CALLS[work.kind]}\n",
    )
    users = str(work.connections)
    command = ["locust", "-f", script, "--headless", "-u", users, "-r", users, "--only-summary"]
    if scene.tells_times:
        command += ["--csv", str(scene.folder / PREFIX)]
    return [*command, "-t", f"{scene.seconds}s", "-H", scene.host(work)]


def read(text: str, folder: Path) -> ReportedTimes:
    """From the line `Aggregated` of its CSV of statistics, in whole milliseconds."""
    with (folder / f"{PREFIX}_stats.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["Name"] == "Aggregated")

    def seconds(column: str) -> float | None:
        return None if row[column] == "N/A" else float(row[column]) / 1e3  # N/A: no answer came

    return ReportedTimes(seconds("50%"), seconds("99%"), seconds("99.9%"), seconds("100%"))


LOCUST = Generator(
    "locust",
    command,
    on_path("locust"),
    lambda: asked("locust", "--version").partition(" from ")[0],
    read,
    has_random_body=True,
    is_slow=True,
)
