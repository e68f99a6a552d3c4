"""Runs that follow eq. 1, as every benchmark of the statistics simulates them.

Truth: the ten published fits (ScaleRL table 1, arXiv 2510.13786) from R_0 of 0.2, 0.3 and 0.4. Readings every 213
GPU-hours to 16k (other budgets for the runs that had them); noise: binomial over 1,000 prompts x 16 samples, plus run
noise of sd 0.0045, white or AR(1) with rho 0.7.
"""

import numpy as np

# Run, C_mid, B, A, GPU-hours between readings, budget.
TRUTHS = [
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
START_LEVELS = (0.2, 0.3, 0.4)
FIT_FROM_GPU_HOURS = 1500
FIT_TO_SHARE_OF_BUDGET = 0.5
NUM_SAMPLES = 16_000
RUN_NOISE_SD = 0.0045
SEED = 251013786
NOISES = {"white": 0.0, "AR(1) rho 0.7": 0.7}


def simulate(
    compute: np.ndarray, *, A: float, B: float, C_mid: float, R_0: float, rho: float, rng: np.random.Generator
) -> np.ndarray:
    """Measured pass rates of a run that follows eq. 1; the first compute is 0."""
    law = np.append(R_0, R_0 + (A - R_0) / (1 + (C_mid / compute[1:]) ** B))
    run_noise = RUN_NOISE_SD * rng.standard_normal(compute.size)
    for index in range(1, compute.size):
        run_noise[index] = rho * run_noise[index - 1] + np.sqrt(1 - rho**2) * run_noise[index]
    return rng.binomial(NUM_SAMPLES, np.clip(law + run_noise, 0, 1)) / NUM_SAMPLES
