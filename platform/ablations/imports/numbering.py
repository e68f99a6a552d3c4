"""Seeds for runs whose source names none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ablations.errors import AblationsError
from ablations.imports.found_run import RunRecord


def numbered(runs: Sequence[RunRecord], before: Mapping[str, int]) -> list[RunRecord]:
    """The runs that have a curve, and unreadable ones of their variants, each with a seed; AblationsError if two of
    one variant have the same seed.

    A run without a curve counts too: it may be the second part of a resumed run, which lacks the times of the first.
    If no run has a curve, those with rows of training count. `before` has the seeds of an earlier import, by id.
    """
    told: dict[tuple[str, int], RunRecord] = {}
    for run in runs:
        if run.seed is None:
            continue
        if (other := told.get((run.variant, run.seed))) is not None:
            raise AblationsError(
                f"{other.place} and {run.place} are both {run.variant}, seed {run.seed}; tell runs apart with "
                "--pattern or --seed, join the parts of a run that was resumed, or name only one of them"
            )
        told[run.variant, run.seed] = run
    taken = {(run.variant, before[run.id]) for run in runs if run.seed is None and run.id in before} | told.keys()
    has_curves = any(run.last_compute is not None for run in runs)
    known = {run.variant for run in runs if run.last_compute is not None or (run.has_rows and not has_curves)}
    found = []
    for run in sorted(runs, key=lambda run: run.last_compute is None):  # these get the numbers that are left
        if run.variant not in known:
            continue
        if run.seed is not None:
            found.append(run)
            continue
        seed = before.get(run.id)
        if seed is None or (run.variant, seed) in told:
            seed = next(number for number in range(len(runs) + 1) if (run.variant, number) not in taken)
        taken.add((run.variant, seed))
        said = []
        if any(other.variant == run.variant and other.seed is not None for other in runs):
            said = [f"{run.place} has no seed, as other runs of {run.variant} have, and counts as seed {seed}"]
        warnings = (*run.warnings, *said, *_after_another(run, runs))
        found.append(replace(run, seed=seed, warnings=warnings))
    return found


def _after_another(run: RunRecord, runs: Sequence[RunRecord]) -> Iterator[str]:
    """A note if a run without a seed begins after another of its variant ends, as the second part of a run does."""
    for one in runs:
        if one.variant == run.variant and one.steps and run.steps and one.steps[1] < run.steps[0]:
            yield (
                f"{run.place} begins at step {run.steps[0]:g}, after {one.place} ends at {one.steps[1]:g}; if they are "
                "parts of one run, join them"
            )
