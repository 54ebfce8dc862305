"""Keywords of the verbs and their types: made by `make docs` from the flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

Text = str | int | float | Path
Texts = Text | Sequence[Text]
File = str | Path


class HitFlags(TypedDict, total=False):
    """Keywords of `loadlens.hit`."""

    connections: Text | None
    requests: Text | None
    duration: Text | None
    rate: Text | None
    think: Text | None
    pace: Text | None
    warmup: Text | None
    ramp: Text | None
    stages: Text | None
    steps: Text | None
    bursts: Text | None
    replay: Text | None
    arrivals: Text | None
    overflow: Text | None
    method: Text | None
    header: Texts | None
    traceparent: bool | None
    body: Text | None
    body_file: File | None
    auth: Text | None
    targets: Text | None
    cookies: bool | None
    timeout: Text | None
    expect: Text | None
    check: Texts | None
    resolve: Text | None
    feed: Texts | None
    insecure: bool | None
    cacert: File | None
    cert: File | None
    key: File | None
    servername: Text | None
    no_resume: bool | None
    objective: Texts | None
    out: Texts | None
    samples: Text | None
    ui: bool | None
    connection: Text | None
    threads: int | None
    seed: int | None
    hide: Texts | None
    save_study: Text | None
    fleet: Text | None
    insecure_fleet: bool | None


class RunFlags(TypedDict, total=False):
    """Keywords of `loadlens.run`."""

    quick: bool | None
    set: Texts | None
    variant: Texts | None
    resume: bool | None
    fleet: Text | None
    insecure_fleet: bool | None
    out: Texts | None
    samples: Text | None
    ui: bool | None


class ExplainFlags(TypedDict, total=False):
    """Keywords of `loadlens.explain`."""

    start: Text | None
    env: Texts | None
    pid: int | Sequence[int] | None
    no_pid: bool | None
    metrics: Text | None
    no_metrics: bool | None
    otlp: Text | None
    no_stacks: bool | None
    no_peers: bool | None
    requests: Text | None
    probe: Text | None
    no_probe: bool | None
    budget: Text | None
    max_users: Text | None
    rate_cap: Text | None
    remote: bool | None
    seed: int | None
    fleet: Text | None
    insecure_fleet: bool | None
    method: Text | None
    header: Texts | None
    traceparent: bool | None
    body: Text | None
    expect: Text | None
    timeout: Text | None
    insecure: bool | None
    objective: Texts | None
    out: Texts | None
    ui: bool | None
    hide: Texts | None


class CompareFlags(TypedDict, total=False):
    """Keywords of `loadlens.compare`."""

    start: Texts | None
    rev: Texts | None
    env: Texts | None
    no_pid: bool | None
    rate: Text | None
    users: Text | None
    budget: Text | None
    remote: bool | None
    seed: int | None
    fleet: Text | None
    insecure_fleet: bool | None
    margin: Text | None
    method: Text | None
    header: Texts | None
    body: Text | None
    expect: Text | None
    timeout: Text | None
    insecure: bool | None
    hide: Texts | None
    page: File | None
    out: Texts | None
    ui: bool | None


class CapacityFlags(ExplainFlags, total=False):
    """Keywords of `loadlens.capacity`."""
