"""Curves with known parameters: ScaleRL eq. 1 and its published fits, exact or with the noise of real readings."""

from typing import Any

import numpy as np

from ablations.fit.curve import Curve

# Run, C_mid, B, A (ScaleRL table 1, arXiv 2510.13786), GPU-hours between readings, budget.
TABLE_1 = [
    ("ScaleRL", 2542, 1.92, 0.610, 213, 16_000),
    ("ScaleRL-32k", 11272, 1.89, 0.645, 680, 50_000),
    ("ScaleRL-8gen", 2542, 2.44, 0.585, 213, 16_000),
    ("ScaleRL-24gen", 3054, 2.22, 0.590, 213, 16_000),
    ("ScaleRL-32gen", 2936, 2.07, 0.595, 213, 16_000),
    ("ScaleRL-Scout", 4242, 1.65, 0.710, 620, 45_000),
    ("ScaleRL-bs512", 2818, 1.77, 0.605, 213, 16_000),
    ("ScaleRL-bs2048", 10909, 1.70, 0.645, 1350, 100_000),
    ("math+code, math", 2896, 2.05, 0.595, 213, 16_000),
    ("math+code, code", 1675, 1.09, 0.615, 213, 16_000),
]
R_0 = 0.3
NUM_SAMPLES = 16_000
EVERY = 213.0
"""GPU-hours between ScaleRL's readings."""


def eq1(C: Any, A: Any = 0.61, B: float = 1.92, C_mid: float = 2542.0, R_0: float = R_0) -> np.ndarray:
    """ScaleRL eq. 1, written as in the paper, by default with the first fit of table 1; C = 0 gives R_0."""
    C = np.asarray(C, dtype=float)
    return np.where(C > 0, R_0 + (A - R_0) / (1 + (C_mid / np.maximum(C, 1e-9)) ** B), R_0)


def readings(every: float = EVERY, end: float = 8000.0) -> np.ndarray:
    """Compute of each reading, 0 included."""
    return np.arange(0, end + 1, every)


def measured(law: np.ndarray, seed: int, *, sd: float = 0.0045, rho: float = 0.0) -> np.ndarray:
    """Scores with the binomial noise of 16,000 samples and AR(1) run noise around the law."""
    rng = np.random.default_rng(seed)
    run_noise = sd * rng.standard_normal(law.size)
    for i in range(1, law.size):
        run_noise[i] = rho * run_noise[i - 1] + np.sqrt(1 - rho**2) * run_noise[i]
    return rng.binomial(NUM_SAMPLES, np.clip(law + run_noise, 0, 1)) / NUM_SAMPLES


def curve_of(law: np.ndarray, seed: int, compute: np.ndarray, *, sd: float = 0.0045, rho: float = 0.0) -> Curve:
    """The law at `compute`, measured."""
    samples = np.full(compute.size, NUM_SAMPLES)
    score = measured(law, seed, sd=sd, rho=rho)
    return Curve(name=f"seed {seed}", compute=compute, score=score, samples=samples)


def exact(name: str = "exact", compute: np.ndarray | None = None, **parameters: float) -> Curve:
    """Eq. 1 without noise."""
    compute = readings() if compute is None else compute
    return Curve(name=name, compute=compute, score=eq1(compute, **parameters))


def noisy(
    seed: int, compute: np.ndarray | None = None, *, sd: float = 0.0045, rho: float = 0.0, **parameters: float
) -> Curve:
    """Eq. 1, measured."""
    compute = readings() if compute is None else compute
    return curve_of(eq1(compute, **parameters), seed, compute, sd=sd, rho=rho)
