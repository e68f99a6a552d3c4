"""How many numbers lie outside their own interval, over fits and comparisons of random studies: there should be none.

    PYTHONPATH=platform:trainer python benchmarks/inside.py        # five minutes on one core

A study has two to four variants of one or two seeds, and four of them two changes, each alone and both together.
Curves rise under eq. 1, fall or stay flat, from 0 and up to 1, in 6 to 40 evaluations with a standard deviation of .002
to .05, white or AR(1); samples and the task's ceiling are known or not. Counted are the numbers and the printed text of
fits, comparisons, main effects, interactions, ladders over two studies, and designs. Then how often the intervals of A
and R_0 hold the truth of eq. 1, beside the quantiles of the draws alone. Writes `results/inside.json`.
"""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

import numpy as np
from record import write_record

from ablations.answers.answer import Answer
from ablations.answers.compare import Comparison, compare
from ablations.answers.half_widths import Sizes, sights
from ablations.answers.interactions import interactions
from ablations.answers.interval import Interval
from ablations.answers.known_scale import assumed
from ablations.answers.ladder import Ladder, rung_of
from ablations.answers.main_effects import main_effects
from ablations.answers.simulated_runs import SimulatedRuns, autoregressive
from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.fit.words import in_words

NUM_FITS, NUM_COMPARISONS, NUM_DESIGNS, NUM_COVERED, SEED = 2000, 500, 20, 200, 48
REFERENCE, CHANGES = "reference", ("reference", "a", "b", "a+b")
CELLS = {REFERENCE: ("no", "no"), "a": ("yes", "no"), "b": ("no", "yes"), "a+b": ("yes", "yes")}
Numbers = Iterator[tuple[str, float | None, float | None, float | None]]
"""A name, the lower end, the number and the upper end; None if there is none."""
PRINTED = re.compile(r"(?P<number>[-+.\d,e]+) \[(?P<lo>[-+.\d,e]+|…), (?P<hi>[-+.\d,e]+|…)\]")


def main() -> None:
    rng = np.random.default_rng(SEED)
    counted, found, kinds, comparisons, fits, earlier = Counter(), Counter(), Counter(), 0, 0, None
    for _ in range(NUM_DESIGNS):
        count(of_design(rng), counted, found)
    covered = {f"A {A:g}, R_0 {R_0:g}": coverage(rng, A, R_0) for A, R_0 in ((0.73, 0.0), (0.73, 0.2), (0.6, 0.05))}
    print(json.dumps(covered, indent=1), flush=True)
    while fits < NUM_FITS or comparisons < NUM_COMPARISONS:
        study = drawn_study(rng)
        fits += sum(map(len, study.values()))
        kinds.update(fit.verdict for seeds in study.values() for fit in seeds)
        numbers = [one for seeds in study.values() for fit in seeds for one in of_fit(fit)]
        if len(study) > 1:
            comparison = compared(study)
            numbers += of_study(study, comparison, earlier)
            comparisons, earlier = comparisons + 1, comparison
        count(numbers, counted, found)
    record = {"seed": SEED, "fits": fits, "comparisons": comparisons, "designs": NUM_DESIGNS, "verdicts": kinds}
    record |= {"numbers": counted.total(), "outside": found.total(), "numbers_by_name": counted}
    record |= {"outside_by_name": +found, "held_of_95_and_80": covered}
    print(json.dumps(record, indent=1))
    write_record("inside", record)


def coverage(rng: np.random.Generator, A: float, R_0: float) -> dict[str, list[float]]:
    """The share of fits whose intervals of 95 and 80 % hold A under eq. 1 and R_0, by the draws alone and as shown; the
    task's ceiling is .73."""
    compute = np.arange(0.0, 21.0)
    held: dict[str, list[list[bool]]] = {}
    for _ in range(NUM_COVERED):
        law = R_0 + (A - R_0) / (1 + (5.0 / np.maximum(compute, 1e-9)) ** 1.9)
        curve = Curve(name="run", compute=compute, score=np.clip(law + 0.01 * rng.standard_normal(21), 0, 1))
        fit = fit_with(curve, FitSettings(ceiling=0.73, r0="free"))
        for name, truth, draws in (("A", A, fit.draws.A), ("R_0", R_0, fit.draws.R_0)):
            shown = fit.summary()[name]
            for kind, ends in {
                "draws": np.quantile(draws, (0.025, 0.975, 0.1, 0.9)),
                "shown": [shown[end] for end in ("lo_95", "hi_95", "lo_80", "hi_80")],
            }.items():
                lo, hi, lo_80, hi_80 = ends
                held.setdefault(f"{name}, {kind}", []).append([lo <= truth <= hi, lo_80 <= truth <= hi_80])
    return {name: np.mean(each, axis=0).tolist() for name, each in held.items()}


def count(numbers: Iterable[tuple[str, float | None, float | None, float | None]], all: Counter, bad: Counter) -> None:
    """Count numbers by name, and those outside their interval."""
    for name, *ends in numbers:
        all[name] += 1
        bad[name] += is_outside(*ends)


def is_outside(lo: float | None, number: float | None, hi: float | None) -> bool:
    """True if the number lies outside its ends, or the ends are in the wrong order."""
    known = [one for one in (lo, number, hi) if one is not None]
    return known != sorted(known)


def drawn_study(rng: np.random.Generator) -> dict[str, list[Fit]]:
    """The fits of a random study by variant; runs that cannot be fitted are left out."""
    num, sd, rho = int(rng.integers(6, 41)), float(np.exp(rng.uniform(*np.log([0.002, 0.05])))), rng.choice([0.0, 0.6])
    compute = np.append(0.0, np.linspace(1 / num, 1, num)) * float(10 ** rng.uniform(0, 4))
    compute = compute if rng.random() < 0.8 else compute[1:]
    samples = float(rng.choice([100, 2000])) if rng.random() < 0.5 else None
    highest = rng.choice([0.3, 0.73, 1.0])
    settings = FitSettings(
        ceiling=float(highest) if rng.random() < 0.5 else None,
        loss="huber" if rng.random() < 0.1 else "squares",
        r0=rng.choice(["anchored", "free"]),
    )
    bottom, top, C_mid, B = rng.choice([0.0, 0.02, 0.3]), highest * rng.choice([0.9, 1.0]), rng.uniform(0, 1), 1.9
    num_seeds = int(rng.integers(1, 3))
    names = CHANGES[: rng.integers(2, 5)]
    study: dict[str, list[Fit]] = {}
    for name in names:
        kind = rng.choice(["rises", "rises", "rises", "rises", "early", "flat", "falls"])
        A, at = top + rng.normal(0, 0.03), {"early": 0.02}.get(kind, C_mid * math.exp(rng.normal(0, 0.2)))
        with np.errstate(divide="ignore"):
            share = 1 / (1 + (max(at, 0.01) * compute[-1] / compute) ** (B * math.exp(rng.normal(0, 0.3))))
        share = {"flat": 0.5 + 0 * share, "falls": 1 - share}.get(kind, share)
        for seed in range(num_seeds):
            law = bottom + (A + rng.normal(0, 0.01) - bottom) * share
            score = np.clip(law + sd * autoregressive(rng.standard_normal(compute.size), rho), 0, 1)
            answers = None if samples is None else np.full(compute.size, samples)
            if samples is not None:
                score = rng.binomial(int(samples), score) / samples
            curve = Curve(name=name, compute=compute, score=score, samples=answers, start=f"seed {seed}")
            with suppress(AblationsError):  # above the task's ceiling
                study.setdefault(name, []).append(fit_with(curve, settings))
    return {name: seeds for name, seeds in study.items() if seeds} if study.get(REFERENCE) else {}


def of_fit(fit: Fit) -> Numbers:
    """All numbers of a fit that have an interval."""
    found = fit.to_json()
    for name in ("A", "A_eq1", "B", "C_mid", "R_0"):
        yield f"fit {name}", found[f"{name}_lo"], found[name], found[f"{name}_hi"]
    for name, one in (found["posterior"] or {}).items():
        estimate = found["A_eq1" if name == "A" else name]
        for number in (estimate, one["median"]):
            yield f"80 % of {name}", one["lo_80"], number, one["hi_80"]
            yield f"95 % of {name}", one["lo_95"], number, one["hi_95"]
        yield f"80 % of {name} in 95 %", one["lo_95"], one["lo_80"], None
        yield f"80 % of {name} in 95 %", None, one["hi_80"], one["hi_95"]
    compute = fit.window[1] * np.array([0, 0.1, 0.5, 1, 2, 10])
    ends = zip(*(end.tolist() for end in fit.predict_interval(compute)), strict=True)
    for estimate, (lo, hi) in zip(fit.predict(compute).tolist(), ends, strict=True):
        yield "curve", lo, estimate, hi
    for share in (0.5, 0.8, 0.95):
        reached, lo, hi = fit.compute_to_reach(fit.R_0 + share * (fit.eq1_A - fit.R_0))
        yield "compute to reach", lo, reached, hi
    yield from of_text("text of a fit", f"{fit}\n{in_words(fit)}")


def of_text(name: str, text: str) -> Numbers:
    """All numbers printed before an interval."""
    for one in PRINTED.finditer(text.replace("−", "-")):
        lo, number, hi = (
            None if one[key] == "…" else float(one[key].replace(",", "")) for key in ("lo", "number", "hi")
        )
        yield name, lo, number, hi


def compared(study: Mapping[str, Sequence[Fit]]) -> Comparison:
    return compare(study, dict.fromkeys(study, 1.0), REFERENCE)


def of_study(study: Mapping[str, Sequence[Fit]], comparison: Comparison, earlier: Comparison | None) -> Numbers:
    """All numbers of a comparison, of its grid and interactions, and of ladders with an `earlier` study."""
    for line in comparison.variants:
        for name, A in (("A", line.asymptote), ("A under eq. 1", line.asymptote_under_eq1)):
            yield f"mean {name}", A.lo, A.A, A.hi
            yield from of_text(f"text of mean {name}", str(A))
        yield from of_answers("comparison", line.answers)
    if comparison.leader:
        yield from of_answers("leader", {"level": comparison.leader.ahead})
    cells = {CELLS[name]: fits for name, fits in study.items()}
    axes = {"a": ("no", "yes"), "b": ("no", "yes")}
    for effect in main_effects(cells, axes, {"a": "no", "b": "no"}, comparison.spreads):
        yield from of_answers("main effect", effect.answers)
    alone = {line.name: line.answers for line in comparison.variants}
    for one in interactions(study, REFERENCE, alone, comparison.spreads):
        yield from of_answers("interaction", one.answers)
    for first, second in itertools.product(earlier.variants[1:] if earlier else (), comparison.variants[1:]):
        for name, answer in second.answers.items():
            rungs = [rung_of(str(x), x, one, 4.0) for x, one in enumerate((first.answers[name], answer))]
            if None not in rungs:
                ladder = Ladder(question=answer.question, rungs=tuple(one for one in rungs if one))
                for interval in (ladder.forecast(2.0), *(ladder.interval(one.difference) for one in ladder.rungs)):
                    yield from of_interval("ladder", interval)


def of_answers(kind: str, answers: Mapping[str, Answer]) -> Numbers:
    for name, one in answers.items():
        yield f"{kind}: {name}", one.lo, one.estimate, one.hi
        yield f"{kind}: {name}, corrected", one.joint_lo, one.estimate, one.joint_hi
        if one.joint_lo is not None and one.lo is not None:
            yield f"{kind}: {name}, 95 % in corrected", one.joint_lo, one.lo, None
        if one.joint_hi is not None and one.hi is not None:
            yield f"{kind}: {name}, 95 % in corrected", None, one.hi, one.joint_hi
        yield from of_text(f"text of {kind}", f"{one.cell}\n{one.unsigned}")


def of_interval(kind: str, one: Interval) -> Numbers:
    yield kind, one.lo, one.estimate, one.hi


def of_design(rng: np.random.Generator) -> Numbers:
    """Half-widths of a random design, which lie between nothing and the smallest difference seen."""
    compute = np.linspace(0, 16_000, int(rng.integers(7, 40)))
    settings = FitSettings(ceiling=0.61 if rng.random() < 0.5 else None)
    known = assumed(unit_gpu_hours=float(rng.uniform(5000, 50_000)), prompts=1000)
    if rng.random() < 0.5:
        known = known.stated(float(rng.uniform(0.001, 0.05)))
    runs = SimulatedRuns(known=known, compute=compute, samples=float(rng.choice([100, 16_000])), settings=settings)
    sizes = Sizes(num_variants=int(rng.integers(2, 10)), num_seeds=int(rng.integers(1, 6)))
    for name, sight in sights(runs, sizes).items():
        yield f"design: {name}", 0.0, asdict(sight)["half_width"], sight.seen
    for fit in (*runs.reference, *runs.variant):
        yield from of_fit(fit)


if __name__ == "__main__":
    main()
