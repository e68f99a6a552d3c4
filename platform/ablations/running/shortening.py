"""Rejects a study that is smaller than its trained runs, unless the user passes `--shorten`."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.labels import PlannedRun, StudySize, run_name
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
    begun = largest if plan.size.is_below(largest) else None
    return replace(plan, begun=begun, left_out=_left_out(plan, before))


def what_is_lost(plan: Plan, home: Home) -> str:
    """Sentence on the part that the plan leaves out: `turns started with 3 seeds at 625 GPU-hours; this file has 1 seed
    at 312.5 GPU-hours`; empty if it leaves nothing out.
    """
    before = _before(plan, home)
    trained = before and size_trained(before)
    if before is None or trained is None:
        return ""
    if not plan.size.is_below(trained):
        return _seeds_lost(plan, before)
    is_narrower = plan.size.num_variants < trained.num_variants
    begun, now = (plan.size_text(size, with_variants=is_narrower) for size in (trained, plan.size))
    return f"{plan.sweep} started with {begun}; this file has {now}"


def _seeds_lost(plan: Plan, before: StartedSweep) -> str:
    """Sentence on trained seeds for which this file has others; empty if there are none, or the seeds that ran under
    this name were left out already."""
    seeds = {variant.name: {run.seed for run in variant.runs} for variant in plan.variants}
    lost: dict[int, list[str]] = {}
    for variant, run in _trained(before, plan):
        if variant in seeds and run.seed not in seeds[variant]:
            lost.setdefault(run.seed, []).append(variant)
    if not lost:
        return ""
    named = ", ".join(map(str, sorted(lost)))
    first = next(iter(lost.values()))[0]
    now = ", ".join(map(str, sorted(seeds[first])))
    return f"{plan.sweep} has trained seed{'s' * (len(lost) > 1)} {named} of {first}; this file has only {now}"


def _left_out(plan: Plan, before: StartedSweep) -> dict[str, str]:
    """The trained runs of the sweep of this name that the plan does not have, as far as they still exist."""
    own = {run.id for run in plan.runs}
    known = before.plan.left_out | {run.id: run_name(variant, run.seed) for variant, run in _trained(before, plan)}
    return {id_: name for id_, name in known.items() if id_ not in own and before.home.run(id_).metrics.exists()}


def newly_left_out(plan: Plan, home: Home) -> list[str]:
    """The names of the runs that a plan leaves out, and the sweep of its name did not; the plan is `sized`."""
    before = _before(plan, home)
    known = {} if before is None else before.plan.left_out
    return [name for id_, name in plan.left_out.items() if id_ not in known]


def _trained(sweep: StartedSweep, plan: Plan) -> Iterator[tuple[str, PlannedRun]]:
    """The runs of a sweep that have spent compute, each with the name of its variant; of a search only those of
    variants in the plan, which gets its trials one by one."""
    own = {variant.name for variant in plan.variants}
    for variant in sweep.plan.variants:
        for run in variant.runs if not plan.search or variant.name in own else ():
            if sweep.run(run.id).read_status().compute_gpu_hours > 0:
                yield variant.name, run


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
