"""Bare recv and send in turn (`loadlens-origin floor`): the least that a generator on sockets can cost."""

from __future__ import annotations

from benches.generators.base import CannotDo, Generator, Scene
from benches.works import Work


def command(work: Work, scene: Scene) -> list[str]:
    if work.is_fresh or work.is_tls or work.kind == "flow" or work.rate is not None:
        raise CannotDo("sends one request over and over on plain kept connections")
    command = [str(scene.origin), "floor", "--port", str(scene.port)]
    command += ["--connections", str(work.connections), "--seconds", str(scene.seconds)]
    return [*command, *(["--post"] if work.kind == "post" else [])]


FLOOR = Generator("floor", command, lambda: None)
