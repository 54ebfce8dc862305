"""The order of trials."""

from __future__ import annotations

from loadlens.model.study import PlannedTrial, Study, draw


def order(study: Study) -> tuple[PlannedTrial, ...]:
    """Every trial of a study, in the order to run.

    Complete blocks: each case once a block, in random order that follows from the seed. Held-out cases
    come after all the others, in blocks too: their predictions rest on everything measured before.
    """
    planned: list[PlannedTrial] = []
    for held_out in (False, True):
        cases = [case for case in study.cases if case.held_out is held_out]
        for block in range(1, max((case.trials for case in cases), default=0) + 1):
            due = [case for case in cases if case.trials >= block]
            if study.order_by == "blocks":
                due.sort(key=lambda case: draw(study.seed, "order", str(block), case.slug))
            for case in due:
                seed = draw(study.seed, "trial", str(block), case.slug)
                planned.append(PlannedTrial(case, block, len(planned) + 1, seed))
    return tuple(planned)
