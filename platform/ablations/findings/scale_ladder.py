"""The same variants at several scales: which differences carry over from one scale to the next.

>>> found = scale_ladder([open_sweep("loo@smoke"), open_sweep("loo@bench"), open_sweep("loo@laptop")])
>>> found.of("loo-loss", "level").word
'carries'
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ablations.answers.answer import Question
from ablations.answers.interval import Interval
from ablations.answers.ladder import Ladder, rung_of
from ablations.errors import AblationsError
from ablations.findings.repeated_runs import some_recipe
from ablations.findings.results import Results
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.text import counted
from scalerl.errors import ScaleRLError
from scalerl.memory.shape import shape_of
from scalerl.recipe import ResolvedRecipe


@dataclass(frozen=True, kw_only=True)
class LadderScale:
    """One scale of a ladder: `LadderScale(name="bench", sweep="loo@bench", parameters=94_000, x=4.97)`."""

    name: str
    sweep: str
    parameters: float | None
    """Parameters of the reference's model; None if unknown."""
    x: float
    """log10 of the parameters, or the scale's place if a size is unknown or two are equal."""


@dataclass(frozen=True, kw_only=True)
class ScaleLadder:
    """All differences of a study over its scales, from the smallest to the largest."""

    reference: str
    scales: tuple[LadderScale, ...]
    at: float
    """Value of x for which the forecasts are made."""
    ladders: Mapping[str, Mapping[str, Ladder]]
    """Ladders by variant, then by question; a question needs intervals at two scales or more."""
    notes: tuple[str, ...] = ()

    @property
    def is_by_size(self) -> bool:
        """True if x is log10 of the parameters."""
        return any(scale.x != place for place, scale in enumerate(self.scales))

    @property
    def at_text(self) -> str:
        """The scale of the forecasts, in words."""
        return f"{_counted(10**self.at)} parameters" if self.is_by_size else "one scale further"

    @property
    def per_text(self) -> str:
        """The step that a trend refers to, in words."""
        return "tenfold parameters" if self.is_by_size else "scale"

    @property
    def questions(self) -> list[Question]:
        """The questions that some variant answers at two scales."""
        return list({one.question.name: one.question for by in self.ladders.values() for one in by.values()}.values())

    def of(self, variant: str, question: str) -> Ladder | None:
        """The ladder of one difference; None if it has fewer than two intervals."""
        return self.ladders.get(variant, {}).get(question)

    def to_json(self) -> dict[str, Any]:
        return {
            "reference": self.reference,
            "scales": [{"scale": one.name, "sweep": one.sweep, "parameters": one.parameters} for one in self.scales],
            "forecast_at": round(10**self.at) if self.is_by_size else None,
            "differences": [
                _difference_json(variant, ladder, self.at)
                for variant, by in self.ladders.items()
                for ladder in by.values()
            ],
            "notes": list(self.notes),
        }


def _difference_json(variant: str, ladder: Ladder, at: float) -> dict[str, Any]:
    question, left_out = ladder.question, ladder.left_out
    return {
        "variant": variant,
        "question": question.name,
        "word": ladder.word,
        "rungs": [{"scale": rung.scale, **_numbers(ladder.interval(rung.difference))} for rung in ladder.rungs],
        "trend": _numbers(ladder.interval(ladder.trend)),
        "forecast": _numbers(ladder.forecast(at)),
        "left_out": None if left_out is None else {"scale": ladder.rungs[-1].scale, **_numbers(left_out)},
    }


def _numbers(interval: Interval) -> dict[str, float | None]:
    return {"estimate": interval.estimate, "lo": interval.lo, "hi": interval.hi}


def scale_ladder(results: Sequence[Results], *, at: float | None = None) -> ScaleLadder:
    """The ladder of the same study at two or more scales; `at` is the number of parameters to forecast for.

    Scales are ordered by the parameters of the reference's model if all are known and differ, else as given. Without
    `at`, the forecast is for one more step as large as the last. Raises AblationsError if there are fewer than two
    scales, if references or scales do not match, or if `at` is given and sizes are unknown.
    """
    if len(results) < 2:
        raise AblationsError("a ladder needs the same study at two scales or more; name a sweep of each")
    references = list(dict.fromkeys(one.plan.reference for one in results))
    if len(references) > 1:
        raise AblationsError(f"the sweeps of a ladder must have the same reference; found {', '.join(references)}")
    names = [scale_of(one) for one in results]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise AblationsError(f"two sweeps have scale {twice[0]}; a ladder needs one sweep of each scale")
    chosen, scales = _in_order(results, names, needs_sizes=at is not None)
    variants = [_variants(one) for one in chosen]
    shared = [name for name in variants[-1] if all(name in names for names in variants)]
    missing = [name for name in dict.fromkeys(chain.from_iterable(variants)) if name not in shared]
    said = f"{counted(len(missing), 'variant')} without a comparison at every scale: {', '.join(missing)}"
    return ScaleLadder(
        reference=references[0],
        scales=scales,
        at=math.log10(at) if at is not None else 2 * scales[-1].x - scales[-2].x,
        ladders={name: dict(_ladders(name, scales, chosen)) for name in shared},
        notes=(*([said] if missing else []), *_read_early(chosen)),
    )


def _in_order(
    results: Sequence[Results], names: Sequence[str], *, needs_sizes: bool
) -> tuple[list[Results], tuple[LadderScale, ...]]:
    """The results with their scales, by size if all sizes are known and differ, else as given."""
    sizes = [
        _number(name) if one.plan.imported else _parameters(one.sweep) for one, name in zip(results, names, strict=True)
    ]
    known = [size for size in sizes if size is not None]
    is_by_size = len(set(known)) == len(results)
    if needs_sizes and not is_by_size:
        raise AblationsError("--at: the scales' numbers of parameters are unknown or equal; omit it")
    order = sorted(range(len(results)), key=known.__getitem__) if is_by_size else range(len(results))
    places = [math.log10(size) for size in sorted(known)] if is_by_size else [float(n) for n in order]
    scales = tuple(
        LadderScale(name=names[n], sweep=results[n].plan.sweep, parameters=sizes[n], x=x)
        for n, x in zip(order, places, strict=True)
    )
    return [results[n] for n in order], scales


def _read_early(results: Sequence[Results]) -> Iterator[str]:
    """Notes on scales at which levels are read early, and on variants that are left out of the level there."""
    for one in results:
        if one.read_early is not None:
            yield f"Levels of {one.title} are read {one.at_compute}."
        if one.comparison is not None and (own := one.comparison.footing.own):
            yield f"Not read with the others of {one.title}, since their runs ended early: {', '.join(own)}."


def ladders_of(home: Home) -> dict[str, list[str]]:
    """The sweeps of each study that was started at two scales or more, the most recent study first.

    `loo@smoke`, `loo@bench` and `loo` at its own scale are one study; `loo@smoke+1f0c9a` has other settings and belongs
    to another study.
    """
    found: dict[str, list[str]] = {}
    for name in home.sweep_names():
        study, _, scale = name.partition("@")
        found.setdefault("+".join([study, *scale.split("+")[1:]]), []).append(name)
    return {study: names[::-1] for study, names in found.items() if len(names) > 1}


def _counted(number: float) -> str:
    """`5.24 M`, `8 B`: a number of parameters in short form."""
    for unit, size in (("B", 1e9), ("M", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:,.0f}"


def scale_of(one: Results) -> str:
    """The scale of a sweep; for a CSV file called `NAME@SCALE`, the value of its column."""
    return one.plan.scale or one.plan.sweep.rpartition("@")[2]


def _variants(one: Results) -> list[str]:
    lines = one.comparison.variants if one.comparison else ()
    return [line.name for line in lines if line.name != one.plan.reference]


def _ladders(variant: str, scales: Sequence[LadderScale], results: Sequence[Results]) -> Iterator[tuple[str, Ladder]]:
    """The ladder of each question that has an interval at two scales or more."""
    for question in results[-1].questions:
        rungs = []
        for scale, one in zip(scales, results, strict=True):
            comparison, line = one.comparison, one.compared(variant)
            if comparison is None or line is None:
                continue
            spread = comparison.spreads[question.name]
            freedom = spread.paired.freedom if spread.paired else spread.within.freedom
            rungs.append(rung_of(scale.name, scale.x, line.answers[question.name], freedom))
        found = tuple(rung for rung in rungs if rung is not None)
        if len(found) > 1:
            yield question.name, Ladder(question=question, rungs=found)


def _number(scale: str) -> float | None:
    """The size in the name of a CSV file's scale: 1.35e8; None for a word."""
    try:
        size = float(scale)
    except ValueError:
        return None
    return size if 0 < size < math.inf else None


def _parameters(sweep: StartedSweep) -> float | None:
    """Parameters of the reference's model; None for a program, or if no run of the reference has started."""
    recipe = some_recipe(sweep, sweep.plan.reference)
    if not isinstance(recipe, ResolvedRecipe):
        return None
    try:
        return float(shape_of(recipe.model).parameters)
    except (OSError, ValueError, ScaleRLError):  # the model's folder is gone
        return None
