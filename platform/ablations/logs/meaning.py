"""Finds a log's columns of steps, scores and compute, and makes the curve."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.logs.attempts import counting_rows
from ablations.logs.counters import beginning_note, check_counters, check_sum
from ablations.logs.expression import (
    ColumnOf,
    Constant,
    Expression,
    calls_of,
    column_text,
    columns_of,
    evaluate,
    parse,
)
from ablations.logs.filled_forward import without_repeats
from ablations.logs.gpu_count import gpus_note
from ablations.logs.log import Log, first_present
from ablations.logs.presets import Preset, find_preset
from ablations.logs.step_axes import with_own_steps
from ablations.logs.steps import StepValues, by_step, check_has_steps, check_one_run, check_one_score, thinning_note
from ablations.nearest_name import MAX_NAMES, did_you_mean, scores_first
from ablations.text import counted

SECONDS_PER_HOUR = 3600
GPU_HOURS = "GPU-hours"
BEGINS_AGAIN = 0.5
"""Share of the compute so far; a drop below it means that the counter restarted, not that a value was logged late."""
STEPS_SHOWN = 3
"""Steps in a message."""
LEAST_SCORES, MOST_WAIT = 3, 3.0
"""Number of scores needed to tell that the score has ended, and the longest gap allowed, as a multiple of the longest
so far."""
SCORE_IS_NAN = "the score is NaN"
"""Beginning of the note on a score that is NaN to the end of its log."""
MOST_OF_A_FRACTION = 0.01
"""Largest score of a run whose fractions were divided by 100."""
STEP_OF_ROW = "the step, once for each row"
"""Name for the step in the compute of a trainer, regardless of the column that holds it."""


@dataclass(frozen=True, kw_only=True)
class LogMeaning:
    """The meaning of a log's columns, from a trainer's names or from expressions.

    LogMeaning(trainer="verl", gpus=64.0)
    LogMeaning(score="eval/acc", compute="cumsum(perf/ms) * 64 / 3.6e6")
    """

    trainer: str | None = None
    gpus: float | None = None
    """GPUs on which each run was trained."""
    step: str | None = None
    score: str | None = None
    compute: str | None = None
    samples: str | None = None
    """Number of generations that a score is averaged over."""

    @property
    def preset(self) -> Preset | None:
        """The metric names of the trainer, if one is named; AblationsError for an unknown trainer."""
        return None if self.trainer is None else find_preset(self.trainer)

    @property
    def steps(self) -> tuple[str, ...]:
        """The requested columns of steps, or else the trainer's."""
        return (self.step,) if self.step else self.preset.steps if self.preset else ()

    def check(self) -> None:
        """Raise AblationsError if options are missing, or have no effect together."""
        preset = self.preset
        if preset is None and (missing := [f"--{name}" for name in ("score", "compute") if not getattr(self, name)]):
            raise AblationsError(f"{' and '.join(missing)} missing; name columns, or the trainer with --log")
        if self.gpus is not None and self.compute is not None:
            raise AblationsError("--gpus has no effect with --compute; write the GPUs into the expression")
        if self.gpus is not None and not (preset and 0 < self.gpus < float("inf")):
            raise AblationsError(
                f"--gpus {self.gpus:g}: must be above 0" if preset else "--gpus has no effect without --log"
            )
        if preset and preset.of_batches and self.samples is not None:
            raise AblationsError(
                f"--samples: {preset.name} logs the mean of the means of its batches, so the number of answers does "
                "not give the error of a score; leave it out, and the noise is estimated from the curve"
            )
        if preset and self.gpus is None and self.compute is None:
            raise AblationsError(f"--log {preset.name} also needs --gpus N, the GPUs of a run, or --compute")

    @property
    def compute_name(self) -> str:
        if self.compute is None:
            return GPU_HOURS
        is_name = not any(sign in self.compute for sign in "(*+<>= ")
        return ("steps" if self.compute == "step" else self.compute.strip("`")) if is_name else "compute"

    def resolve(self, columns: Collection[str], place: str) -> "Expressions":
        """The expressions for a log with these columns; AblationsError lists the available columns."""
        try:
            return Expressions(
                score=self.resolve_score(columns),
                compute=self._resolve_compute(columns),
                samples=parse(self.samples, columns, option="--samples") if self.samples else None,
                step=parse(self.step, columns, option="--step") if self.step else None,
            )
        except AblationsError as error:
            raise AblationsError(f"{place}: {error}" if place else str(error)) from None

    def resolve_score(self, columns: Collection[str]) -> Expression:
        """The expression of just the score."""
        return parse(self.score or _score(self.preset, columns), columns, option="--score")

    def score_name(self, columns: Collection[str]) -> str:
        """The columns of the score, and those whose sum it is: `eval_reward (of eval_rewards/acc/mean)`."""
        names = list(dict.fromkeys(columns_of(self.resolve_score(columns))))
        is_sum = self.preset is not None and any(name in self.preset.scores for name in names)
        parts = self.preset.summand_columns(columns) if self.preset is not None and is_sum else []
        return ", ".join(names) + (f" (of {', '.join(parts)})" if parts else "")

    def described(self, columns: Collection[str]) -> dict[str, str]:
        """What score and compute are made of: {"score": "acc", "compute": "timing_s/step with --gpus 8"}."""
        score, compute = self.score_name(columns), self.compute
        if not isinstance(self.resolve_score(columns), ColumnOf):
            score = f"{self.score}, from {score}"
        if compute is None:
            assert self.preset is not None, "checked before"
            assert self.gpus is not None, "checked before"
            compute = f"{' + '.join(self.preset.time_columns(columns))} with --gpus {self.gpus:g}"
        return {"score": score, "compute": compute}

    def _resolve_compute(self, columns: Collection[str]) -> Expression:
        if self.compute:
            return parse(self.compute, columns, option="--compute")
        preset = self.preset
        assert preset is not None, "checked before"
        seconds = preset.time_columns(columns)
        if not seconds:
            raise AblationsError(
                f"--log {preset.name}: no column {' or '.join(preset.seconds)} with the time of a step; name the "
                f"compute with --compute; {did_you_mean(preset.seconds[0], scores_first(columns), 'columns')}"
            )
        time = " + ".join(f"where({column_text(name)} > 0, {column_text(name)}, 0)" for name in seconds)
        if preset.is_mean:
            time = f"next(where({time} > 0, {time})) * diff({column_text(STEP_OF_ROW)})"
        text = f"cumsum({time}) * {self.gpus} / {SECONDS_PER_HOUR}"
        return parse(text, [*seconds, STEP_OF_ROW], option="--log")


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """A meaning for the columns of one log: `Expressions(score=ColumnOf(name="acc"), compute=..., samples=None)`."""

    score: Expression
    compute: Expression
    samples: Expression | None
    step: Expression | None

    @property
    def columns(self) -> list[str]:
        """The columns needed for the values at a step."""
        wanted = [column for one in (self.score, self.compute, self.samples) if one for column in columns_of(one)]
        return [column for column in dict.fromkeys(wanted) if column != STEP_OF_ROW]


def _score(preset: Preset | None, columns: Collection[str]) -> str:
    """The only score of a trainer in these columns."""
    assert preset is not None, "checked before"
    found = preset.score_columns(columns)
    if len(found) == 1:
        return column_text(found[0])
    if found:
        listed = ", ".join(found[:MAX_NAMES]) + (f" and {len(found) - MAX_NAMES} more" if found[MAX_NAMES:] else "")
        raise AblationsError(f"{len(found)} columns hold a held-out score; choose one with --score: {listed}")
    raise AblationsError(
        f"--log {preset.name}: no column {' or '.join(preset.scores)}; name the held-out score with --score; "
        f"{did_you_mean(preset.scores[0], scores_first(columns), 'columns')}"
    )


def curve_of_log(log: Log, meaning: LogMeaning, *, name: str, start: str) -> tuple[Curve, list[str]]:
    """The curve of a log, and sentences on skipped data.

    Steps without a score or compute are not readings. Raises AblationsError if the log has no reading, or has invalid
    numbers.
    """
    found = meaning.resolve(log.columns.keys(), log.place)
    steps = steps_of_rows(log, meaning, found)
    scores = list(dict.fromkeys(columns_of(found.score)))
    if not meaning.steps:
        log, steps = with_own_steps(log, steps, scores, found.columns)
    for column in scores:
        check_one_run(log, steps, log.columns[column], column)
    nan_steps = np.concatenate([steps[log.nan_rows(column)] for column in scores])
    counting = counting_rows(log, steps, scores, found.columns)
    log, steps = counting.log, counting.steps
    for column in scores:
        check_one_score(log, steps, counting.attempt, column)
    values = by_step(steps, {column: log.columns[column] for column in found.columns})
    for column in _summed(found.compute):
        check_has_steps(log, steps, column)
        if meaning.compute is not None:
            check_sum(log.place, column, values.columns[column])
    size = values.step.size
    score = evaluate(found.score, values.columns, size)
    compute = evaluate(found.compute, {**values.columns, STEP_OF_ROW: values.step}, size)
    check_counters(log.place, found.compute, values.columns, compute)
    is_scored = ~np.isnan(score)
    is_reading = is_scored & ~np.isnan(compute)
    if not is_reading.any():
        scored, computed = (_first_steps(values.step[~np.isnan(one)]) for one in (score, compute))
        raise AblationsError(
            f"{log.place}: no step has both score and compute; see --score and --compute, or name a step that both "
            f"share with --step (score {scored}, compute {computed})"
        )
    untimed = _untimed(values, compute, is_reading, list(_summed(found.compute)))
    is_reading &= ~untimed
    _check_rises(log.place, values.step, compute, is_reading)
    samples = None if found.samples is None else evaluate(found.samples, values.columns, size)
    first = values.step[is_reading][0]
    try:
        curve = Curve(
            name=name,
            compute=compute[is_reading],
            score=score[is_reading],
            samples=None if samples is None else samples[is_reading],
            step=values.step[is_reading] if first >= 0 else None,
            start=start,
        )
        thinned = [
            thinning_note(values.step, values.columns[column], column, is_of_each_step=meaning.compute is None)
            for column in _summed(found.compute)
        ]
    except AblationsError as error:
        raise AblationsError(f"{log.place}: {error}") from None
    curve, on_repeats = without_repeats(curve)
    return curve, [
        *log.notes,
        *_odd_values(log, values, found, counting.notes),
        *_left_out(values.step, compute, is_scored, is_reading, untimed, nan_steps),
        *filter(
            None,
            [
                _percent_twice(found.score, values.columns, score[is_reading]),
                on_repeats,
                *thinned,
                *_on_compute(log, values, compute, meaning, found),
            ],
        ),
    ]


def _percent_twice(score: Expression, columns: Mapping[str, np.ndarray], values: np.ndarray) -> str:
    """A note if a score is divided by 100 whose columns are fractions already."""
    divided = [
        call
        for sign, by in (("/", 100.0), ("*", 0.01))
        for call in calls_of(score, sign)
        if any(one == Constant(value=by) for one in call.arguments)
    ]
    known = [columns[name][~np.isnan(columns[name])] for name in columns_of(score)]
    if not divided or not all(one.size and one.min() >= 0 and one.max() <= 1 for one in known):
        return ""
    if not 0 < float(np.nanmax(values)) <= MOST_OF_A_FRACTION:
        return ""
    named, raw = " and ".join(dict.fromkeys(columns_of(score))), max(float(one.max()) for one in known)
    return (
        f"{named} is at most {raw:g}, so it may be a fraction already, and --score divides it by 100; if so, write the "
        "column alone"
    )


def _on_compute(
    log: Log, values: StepValues, compute: np.ndarray, meaning: LogMeaning, found: Expressions
) -> Iterator[str]:
    """Sentences on compute that may count something else than was meant."""
    if meaning.compute is not None:
        if not any(calls_of(found.compute, "cumsum")) and "step" not in found.columns:
            yield beginning_note(values.step, compute, meaning.compute)
    elif meaning.preset and meaning.gpus:
        yield gpus_note(log.columns, meaning.preset, list(_summed(found.compute)), meaning.gpus)


def _odd_values(log: Log, values: StepValues, found: Expressions, of_attempts: Sequence[str]) -> Iterator[str]:
    """Sentences on values that are NaN, of another attempt, logged twice, negative, or without a step."""
    for column in found.columns:
        if count := log.nan_rows(column).size:
            yield f"{column} was logged as NaN {counted(count, 'time')}; these values are left out"
    yield from of_attempts
    if repeated := int(values.repeated.sum()):
        yield f"{counted(repeated, 'step')} logged again with other values; the last are used"
    for column in _summed(found.compute):
        if count := int(np.sum(values.columns[column] < 0)):
            yield f"{column} is negative {counted(count, 'time')}"
    if values.stepless:
        yield f"{counted(values.stepless, 'row')} without a step skipped"


def _left_out(
    step: np.ndarray,
    compute: np.ndarray,
    is_scored: np.ndarray,
    is_reading: np.ndarray,
    untimed: np.ndarray,
    nan_steps: np.ndarray,
) -> Iterator[str]:
    """Sentences on evaluations that are missing at the end, or are no readings of the curve."""
    if ended := _early_end(step, is_scored, compute, nan_steps):
        yield ended
    of_all = counted(int(is_scored.sum()), "evaluation")
    if untimed.any():
        at = _first_steps(step[untimed])
        yield f"{int(untimed.sum())} of {of_all} left out, since the time of their step is missing ({at})"
    if dropped := int(is_scored.sum() - is_reading.sum() - untimed.sum()):
        yield f"{dropped} of {of_all} have no compute at their step"


def _first_steps(steps: np.ndarray) -> str:
    shown = ", ".join(f"{step:g}" for step in steps[:STEPS_SHOWN])
    return f"at {shown}{' ...' * (steps.size > STEPS_SHOWN)}" if shown else "at none"


def _untimed(values: StepValues, compute: np.ndarray, is_reading: np.ndarray, summed: Sequence[str]) -> np.ndarray:
    """True for readings with the compute of the one before, because no step since then has a time."""
    found = np.zeros(is_reading.size, dtype=bool)
    if summed:
        has_time = np.cumsum(np.any([~np.isnan(values.columns[name]) for name in summed], axis=0))
        read = np.flatnonzero(is_reading)
        found[read[1:]] = (compute[read[1:]] == compute[read[:-1]]) & (has_time[read[1:]] == has_time[read[:-1]])
    return found


def _check_rises(place: str, step: np.ndarray, compute: np.ndarray, is_reading: np.ndarray) -> None:
    """Raise AblationsError if compute does not rise from one evaluation to the next, or begins again at any step."""
    known = np.isfinite(compute)
    at, value = step[known], compute[known]
    read = np.flatnonzero(is_reading[known])
    pairs = [(after - 1, after) for after in np.flatnonzero(value[1:] < value[:-1] * BEGINS_AGAIN) + 1]
    pairs += [(before, after) for before, after in pairwise(read) if value[after] <= value[before]]
    for before, after in sorted(pairs, key=lambda pair: pair[1])[:1]:
        counter = "; for a counter x that begins again at a resume write cumsum(where(diff(x) > 0, diff(x), x))"
        raise AblationsError(
            f"{place}: compute {value[after]:g} comes after {value[before]:g}; compute must increase, with one score "
            f"per value (steps {at[before]:g} and {at[after]:g}){counter if value[after] < value[before] else ''}"
        )


def _early_end(step: np.ndarray, is_scored: np.ndarray, compute: np.ndarray, nan_steps: np.ndarray) -> str:
    """A note if the scores end long before the compute does, as when the name of a metric has changed or the model has
    diverged; `nan_steps` are the steps at which the score was logged as NaN."""
    scored, counted_steps = step[is_scored], step[~np.isnan(compute)]
    if scored.size < LEAST_SCORES or counted_steps[-1] - scored[-1] <= MOST_WAIT * np.max(np.diff(scored)):
        return ""
    if (later := nan_steps[nan_steps > scored[-1]]).size:
        return (
            f"{SCORE_IS_NAN} from step {later.min():g} to {later.max():g}: the model may have diverged; the curve "
            f"ends at step {scored[-1]:g}, which may flatter this run"
        )
    return (
        f"the score ends at step {scored[-1]:g}, but the log at {counted_steps[-1]:g}; if the metric has two names, "
        'write --score "where(a >= 0, a, b)"'
    )


def steps_of_rows(log: Log, meaning: LogMeaning, found: Expressions) -> np.ndarray:
    """The step of every row; NaN for rows that belong to none. AblationsError for an infinite one."""
    steps = _steps_of_rows(log, meaning, found)
    if (rows := np.flatnonzero(np.isinf(steps))).size:
        raise AblationsError(f"{log.place}: the step of row {rows[0] + 1:,} is infinite; correct or remove this row")
    return steps


def _steps_of_rows(log: Log, meaning: LogMeaning, found: Expressions) -> np.ndarray:
    if found.step is not None:
        needed = {column: log.columns[column] for column in columns_of(found.step)}
        return evaluate(found.step, needed, max((len(values) for values in needed.values()), default=0))
    if meaning.preset and (own := [name for name in meaning.preset.steps if name in log.columns]):
        return first_present(log, own)
    own = next((one for one in log.steps if one in log.columns), None)
    if own is None and meaning.preset is None and not any(calls_of(found.compute, "cumsum")):
        return _order_of_rows(log, found)
    return first_present(log, [own or log.steps[0]])


def _order_of_rows(log: Log, found: Expressions) -> np.ndarray:
    """The number of each row, for a table without steps whose compute is a column."""
    if labels := log.labels():
        raise AblationsError(
            f"{log.place}: no column of steps, and rows differ in {' and '.join(map(repr, labels))}; name the columns "
            "that tell runs apart with --variant and --seed"
        )
    return np.arange(max((len(log.columns[column]) for column in found.columns), default=0), dtype=float)


def _summed(compute: Expression) -> Iterator[str]:
    """Columns whose values are summed over all steps, so that none may be missing."""
    for call in calls_of(compute, "cumsum"):
        if not any(calls_of(call.arguments[0], "diff")):
            yield from dict.fromkeys(columns_of(call.arguments[0]))
