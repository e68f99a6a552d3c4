"""Rejects a study that is smaller than its trained runs, unless the user passes `--shorten`."""

from contextlib import suppress
from dataclasses import replace

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.labels import StudySize
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep, read_sweep


def sized(plan: Plan, home: Home, *, shorten: bool) -> Plan:
    """The plan with the size of the study at its start, if that was larger.

    Raises AblationsError if the plan is smaller than the trained part of the sweep of its name and `shorten` is False.
    """
    if (text := what_is_lost(plan, home)) and not shorten:
        raise AblationsError(f"{text}. To use only this part of the results, add --shorten")
    before = _before(plan, home)
    if before is None:
        return plan
    largest = before.plan.begun or plan.size
    if trained := size_trained(before):
        largest = largest.or_larger(trained)
    return replace(plan, begun=largest if plan.size.is_below(largest) else None)


def what_is_lost(plan: Plan, home: Home) -> str:
    """Sentence on the part that the plan leaves out: `turns started with 3 seeds at 625 GPU-hours; this file has 1 seed
    at 312.5 GPU-hours`; empty if it leaves nothing out.
    """
    before = _before(plan, home)
    trained = before and size_trained(before)
    if trained is None or not plan.size.is_below(trained):
        return ""
    is_narrower = plan.size.num_variants < trained.num_variants
    begun, now = (plan.size_text(size, with_variants=is_narrower) for size in (trained, plan.size))
    return f"{plan.sweep} started with {begun}; this file has {now}"


def size_trained(sweep: StartedSweep) -> StudySize | None:
    """The size of the trained part of a sweep; None if nothing was trained."""
    plan, spent = sweep.plan, dict[tuple[str, int], float]()
    for variant in plan.variants:
        for run in variant.runs:
            compute = sweep.run(run.id).read_status().compute_gpu_hours
            if compute > 0:
                spent[variant.name, run.seed] = compute
    if not spent:
        return None
    return StudySize(
        num_variants=1 if plan.search else len({name for name, _ in spent}),
        num_seeds=len({seed for _, seed in spent}),
        budget_gpu_hours=min(plan.budget_gpu_hours, max(spent.values())),
    )


def _before(plan: Plan, home: Home) -> StartedSweep | None:
    """The sweep of this name at its last start; None if there is none or its plan cannot be read."""
    with suppress(AblationsError, OSError):  # `platform sweep` writes an unreadable plan anew, and says what is no home
        return read_sweep(home, plan.sweep)
    return None
