"""The order of trials."""

from __future__ import annotations

from loadlens.model.study import PlannedTrial, Study, draw


def order(study: Study) -> tuple[PlannedTrial, ...]:
    """Every trial of a study, in the order to run.

    Complete blocks: each case once a block, in random order that follows from the seed. Trials that sample
    stacks come after those that give figures. Held-out cases come last, in blocks too: their predictions rest
    on everything measured before.
    """
    planned: list[PlannedTrial] = []
    apart = [case for case in study.cases if case.purpose == "stacks"]
    measured = [case for case in study.cases if case.purpose != "stacks"]
    held_out = [case for case in measured if case.held_out]
    for cases in ([case for case in measured if not case.held_out], apart, held_out):
        for block in range(1, max((case.trials for case in cases), default=0) + 1):
            due = [case for case in cases if case.trials >= block]
            if study.order_by == "blocks":
                due.sort(key=lambda case: draw(study.seed, "order", str(block), case.slug))
            for case in due:
                seed = draw(study.seed, "trial", str(block), case.slug)
                planned.append(PlannedTrial(case, block, len(planned) + 1, seed))
    return tuple(planned)
