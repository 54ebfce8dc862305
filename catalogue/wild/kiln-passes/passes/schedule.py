"""Firing schedules."""

CONES = {"06": 999, "05": 1046, "04": 1060, "6": 1222, "10": 1305}
STAGES = {"bisque": (60, 100, 120), "glaze": (100, 150, 200), "lustre": (80, 120, 160)}


def schedule(kind: str, cone: str) -> list[dict[str, int]]:
    top = CONES[cone]
    steps = []
    reached = 20
    for number, rate in enumerate(STAGES[kind], 1):
        target = top * number // len(STAGES[kind])
        steps.append({"stage": number, "per_hour": rate, "to": target, "minutes": (target - reached) * 60 // rate})
        reached = target
    return steps
