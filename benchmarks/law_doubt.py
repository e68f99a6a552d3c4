"""What intervals of A promise where the law is another: coverage, width and false verdicts, averaged and under eq. 1.

    PYTHONPATH=platform:trainer python benchmarks/law_doubt.py          # about three minutes on one core
    PYTHONPATH=platform:trainer python benchmarks/law_doubt.py unlisted # about four minutes
    PYTHONPATH=platform:trainer python benchmarks/law_doubt.py pairs    # about ten minutes

Curves: 45 readings to 16k, all fitted, from R_0 of .2 to .4 to A of .55 to .7; noise binomial over 16,000 samples plus
a run noise of sd .0045 (.010 at AR(1) .95). The laws, everything uniform in its range:

    eq. 1                      C_mid 1,700 to 4,200, B 1.1 to 2.4
    power law                  A - (A - R_0) (1 + C / C_s)^-b, C_s 600 to 2,500, b .5 to 1.2
    stretched exponential      A - (A - R_0) exp(-(C / C_s)^b), C_s 1,700 to 4,200, b .6 to 1.1
    Weibull                    the same, C_s 2,500 to 5,500, b 1.1 to 1.8
    early second phase         eq. 1 to A - h (C_mid 1,000 to 2,000, B 1.3 to 2.2) and a second rise by h, .04 to .08,
                               with C_mid at a fifth to a third of the last compute and B 3 to 5

Laws that are not among the families (`unlisted`):

    Gompertz                   R_0 + (A - R_0) (G(C) - G(0)) / (1 - G(0)), G = exp(-b exp(-C / s)), b 2 to 5, s 1,500 to
                               3,500
    capped                     R_0 + (A - R_0) min(1, (C / C_cap)^b), C_cap 5,000 to 10,000, b .4 to .8
    late start                 eq. 1 from .02 to .06 of the last compute on, flat before
    plateau                    eq. 1 from .1 to .2 of the last compute on
    two speeds                 half of the rise by eq. 1 with C_mid 800 to 1,500, half with 3,000 to 5,000
    drift                      eq. 1 and a rise of .02 that has just begun at the last compute and ends far beyond
    decline                    eq. 1, and from .7 of the last compute on a decline to .95 of the pass rate

Pairs, three seeds a side, runs of one recipe .0075 apart in A: the variant is slower by a factor of 1.6 with the
reference's ceiling, or as fast with a ceiling .03 or .06 higher. Writes `results/law_doubt.json`, of pairs
`results/law_doubt_pairs.json`, of unlisted laws `results/law_doubt_unlisted.json`.
"""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from record import write_record
from simulation import NUM_SAMPLES, RUN_NOISE_SD, SEED

from ablations.answers.compare import compare
from ablations.fit.asymptote import DOUBTED
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

COMPUTE = np.linspace(0, 16_000, 46)
CURVES = 200
PAIRS = 200
SEEDS = 3
RUN_TO_RUN_SD = 0.0075
SLOWER = 1.6
WRONG = 0.02
CELLS = [
    ("eq. 1", 0.0, RUN_NOISE_SD),
    ("eq. 1", 0.55, RUN_NOISE_SD),
    ("eq. 1", 0.8, RUN_NOISE_SD),
    ("eq. 1", 0.95, 0.010),
    *((law, rho, RUN_NOISE_SD) for rho in (0.0, 0.55) for law in ("power law", "stretched", "Weibull", "second phase")),
]
UNLISTED = [
    (law, rho, RUN_NOISE_SD)
    for rho in (0.0, 0.55)
    for law in ("Gompertz", "capped", "late start", "plateau", "two speeds", "drift", "decline")
]
KINDS = (("slower", SLOWER, 0.0), ("A + .03", 1.0, 0.03), ("A + .06", 1.0, 0.06))
Law = Callable[[np.ndarray, float], np.ndarray]
"""Pass rate at each compute for a ceiling A."""


def main() -> None:
    if sys.argv[1:] == ["pairs"]:
        pairs = [pair(law, *kind) for law in ("eq. 1", "Weibull", "stretched") for kind in KINDS]
        settings = {"pairs": PAIRS, "seeds": SEEDS, "run_to_run_sd": RUN_TO_RUN_SD, "slower": SLOWER, "seed": SEED}
        write_record("law_doubt_pairs", {"settings": settings, "pairs": pairs})
    else:
        chosen, name = (UNLISTED, "law_doubt_unlisted") if sys.argv[1:] == ["unlisted"] else (CELLS, "law_doubt")
        cells = [cell(*one) for one in chosen]
        write_record(name, {"settings": {"curves": CURVES, "seed": SEED}, "cells": cells})


def cell(law: str, rho: float, sd: float) -> dict[str, Any]:
    """One line of the first table."""
    found = {"law": law, "rho": rho, "run_noise_sd": sd, **measure(law, rho, sd)}
    print(json.dumps(found), flush=True)
    return found


def pair(law: str, kind: str, slower: float, higher: float) -> dict[str, Any]:
    """One line of the second table."""
    found = {"law": law, "variant": kind, **compared(law, slower, higher)}
    print(json.dumps(found), flush=True)
    return found


def drawn_law(name: str, rng: np.random.Generator, slower: float = 1.0) -> tuple[Law, float]:
    """A law with parameters drawn from its ranges, times of it stretched by `slower`, and a ceiling."""
    R_0, A = rng.uniform(0.2, 0.4), rng.uniform(0.55, 0.7)
    if name == "eq. 1":
        B, C_mid = rng.uniform(1.1, 2.4), slower * rng.uniform(1700, 4200)
        return lambda C, A: eq1(C, A, B, C_mid, R_0), A
    if name in ("late start", "plateau"):
        B, C_mid = rng.uniform(1.1, 2.4), slower * rng.uniform(1700, 3500)
        start = COMPUTE[-1] * rng.uniform(*{"late start": (0.02, 0.06), "plateau": (0.1, 0.2)}[name])
        return lambda C, A: eq1(np.maximum(C - start, 0), A, B, C_mid, R_0), A
    if name in ("two speeds", "drift", "decline"):
        B, C_mid, late = rng.uniform(1.3, 2.2), rng.uniform(1500, 3000), rng.uniform(3000, 5000)
        early = rng.uniform(800, 1500)

        def law(C: np.ndarray, A: float) -> np.ndarray:
            if name == "two speeds":
                return (eq1(C, A, B, early, R_0) + eq1(C, A, B, late, R_0)) / 2
            if name == "drift":
                return eq1(C, A - 0.02, B, C_mid, R_0) + eq1(C, 0.02, 3.0, 2 * COMPUTE[-1], 0.0)
            return eq1(C, A, B, C_mid, R_0) * (1 - 0.05 * np.clip((C / COMPUTE[-1] - 0.7) / 0.3, 0, 1))

        return law, A
    if name == "Gompertz":
        b, s = rng.uniform(2, 5), slower * rng.uniform(1500, 3500)
        first = np.exp(-b)
        return lambda C, A: R_0 + (A - R_0) * (np.exp(-b * np.exp(-C / s)) - first) / (1 - first), A
    if name == "capped":
        b, cap = rng.uniform(0.4, 0.8), slower * rng.uniform(5000, 10_000)
        return lambda C, A: R_0 + (A - R_0) * np.minimum(1, (C / cap) ** b), A
    if name == "second phase":
        C_mid, B, h = slower * rng.uniform(1000, 2000), rng.uniform(1.3, 2.2), rng.uniform(0.04, 0.08)
        second, steep = slower * 16_000 / 4 * rng.uniform(0.8, 1.25), rng.uniform(3, 5)
        return lambda C, A: eq1(C, A - h, B, C_mid, R_0) + h * eq1(C, 1.0, steep, second, 0.0), A
    scales = {"power law": (600, 2500), "stretched": (1700, 4200), "Weibull": (2500, 5500)}
    exponents = {"power law": (0.5, 1.2), "stretched": (0.6, 1.1), "Weibull": (1.1, 1.8)}
    b, C_s = rng.uniform(*exponents[name]), slower * rng.uniform(*scales[name])
    if name == "power law":
        return lambda C, A: A - (A - R_0) * (1 + C / C_s) ** -b, A
    return lambda C, A: A - (A - R_0) * np.exp(-((C / C_s) ** b)), A


def eq1(C: np.ndarray, A: float, B: float, C_mid: float, R_0: float) -> np.ndarray:
    """R_C = R_0 + (A - R_0) / (1 + (C_mid / C)^B) (ScaleRL eq. 1, arXiv 2510.13786)."""
    return R_0 + (A - R_0) / (1 + (C_mid / np.maximum(C, 1e-9)) ** B)


def fitted(law: Law, A: float, rho: float, sd: float, rng: np.random.Generator) -> Fit:
    """The fit of one run's readings."""
    noise = sd * rng.standard_normal(COMPUTE.size)
    for index in range(1, COMPUTE.size):
        noise[index] = rho * noise[index - 1] + np.sqrt(1 - rho**2) * noise[index]
    score = rng.binomial(NUM_SAMPLES, np.clip(law(COMPUTE, A) + noise, 0, 1)) / NUM_SAMPLES
    return fit_curve(Curve(name="run", compute=COMPUTE, score=score, samples=np.full(COMPUTE.size, NUM_SAMPLES)))


def measure(law: str, rho: float, sd: float) -> dict[str, Any]:
    """Coverage, widths, verdicts and the test of eq. 1 over curves of one law and noise."""
    rng = np.random.default_rng([SEED, [*CELLS, *UNLISTED].index((law, rho, sd))])
    fits, truths = [], []
    for _ in range(CURVES):
        of_law, A = drawn_law(law, rng)
        fits.append(fitted(of_law, A, rho, sd, rng))
        truths.append(A)
    A = np.array(truths)
    averaged = [(fit.ceiling.lo, fit.ceiling.hi) for fit in fits]
    alone = [(fit.eq1_lo, fit.eq1_hi) for fit in fits]
    both = [(fit.ceiling.hi - fit.ceiling.lo, fit.eq1_hi - fit.eq1_lo) for fit in fits if fit.ceiling.hi and fit.eq1_hi]
    error = np.array([fit.ceiling.estimate for fit in fits]) - A
    resolved = np.array([fit.verdict == "resolved" for fit in fits])
    resolved_alone = np.array([fit.eq1_hi is not None and fit.eq1_hi - fit.eq1_lo <= 0.04 for fit in fits])
    return {
        "coverage": coverage(averaged, A),
        "coverage_under_eq1": coverage(alone, A),
        "bounded": rounded(np.mean([hi is not None for _, hi in averaged])),
        "bounded_under_eq1": rounded(np.mean([hi is not None for _, hi in alone])),
        "median_width": rounded(np.median([width for width, _ in both])),
        "median_width_under_eq1": rounded(np.median([width for _, width in both])),
        "median_ratio_of_widths": rounded(np.median([width / other for width, other in both])),
        "resolved": rounded(resolved.mean()),
        "resolved_under_eq1": rounded(resolved_alone.mean()),
        "resolved_and_wrong": rounded(np.mean(resolved & (np.abs(error) > WRONG))),
        "resolved_and_wrong_under_eq1": rounded(
            np.mean(resolved_alone & (np.abs(np.array([fit.eq1_A for fit in fits]) - A) > WRONG))
        ),
        "bias": rounded(error.mean()),
        "bias_under_eq1": rounded(np.mean([fit.eq1_A for fit in fits] - A)),
        "mean_weight_of_eq1": rounded(np.mean([fit.alternatives.eq1_weight for fit in fits])),
        "eq1_doubted": rounded(np.mean([fit.eq1_p < DOUBTED for fit in fits])),
    }


def compared(law: str, slower: float, higher: float) -> dict[str, Any]:
    """How often three seeds of a variant are called different in the ceiling."""
    rng = np.random.default_rng([SEED, 1])
    called = []
    for _ in range(PAIRS):
        seed = int(rng.integers(2**31))
        # Both draw the same parameters: they differ only as asked.
        reference, A = drawn_law(law, np.random.default_rng(seed))
        variant, _ = drawn_law(law, np.random.default_rng(seed), slower)
        sides = {
            name: [
                fitted(of_law, ceiling + RUN_TO_RUN_SD * rng.standard_normal(), 0.0, RUN_NOISE_SD, rng)
                for _ in range(SEEDS)
            ]
            for name, of_law, ceiling in (("reference", reference, A), ("variant", variant, A + higher))
        }
        called.append(compare(sides, dict.fromkeys(sides, 1.0), "reference").variants[1].answers["ceiling"].verdict)
    names = ("ceiling up", "ceiling down", "no difference seen", "cannot tell")
    return {name: rounded(np.mean([one == name for one in called])) for name in names}


def coverage(intervals: Sequence[tuple[float, float | None]], A: np.ndarray) -> float:
    """Share of intervals that hold the truth; an end that is None sets no limit."""
    held = [lo <= truth and (hi is None or truth <= hi) for (lo, hi), truth in zip(intervals, A, strict=True)]
    return rounded(np.mean(held))


def rounded(value: Any) -> float:
    return round(float(value), 4)


if __name__ == "__main__":
    main()
