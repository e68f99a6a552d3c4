"""How often an interval leaves out the truth, and how wide it is, by the prior of the run-to-run sd: exact, no runs.

    PYTHONPATH=platform:trainer python benchmarks/spread_prior.py    # about a minute

Seeds give s^2 = tau^2 chi^2(f) / f with f degrees of freedom; the offset of a run is N(0, tau^2) with tau from its
posterior, and the interval reaches to its 97.5 % point h. A difference of means scales alike. Averaged over chi^2:
2 Phi(-h / tau), the share of intervals that leave out the truth, and h over 1.96 tau. Priors are of ln tau. Two seeds
of nine variants are f = 9, three are 18; six runs of one recipe are 5, three pairs 3. Writes
`results/spread_prior.json`.
"""

from collections.abc import Callable

import numpy as np
from record import write_record
from scipy.optimize import brentq
from scipy.special import gammaincinv, ndtr, ndtri

from ablations.answers.run_to_run import ASSUMED_SD, GRID, PRIOR_SCALE

LogPrior = Callable[[np.ndarray], np.ndarray]
FREEDOMS = (1, 2, 3, 4, 5, 9, 18, 36)
SDS = (0.003, 0.0075, 0.015, 0.03)
QUANTILES = (np.arange(60) + 0.5) / 60


def half_cauchy(scale: float) -> LogPrior:
    """p(tau) ~ 1 / (1 + (tau / scale)^2)."""
    return lambda tau: np.log(tau) - np.log1p((tau / scale) ** 2)


def inverse_chi_squared(freedom: float, sd: float) -> LogPrior:
    """tau^2 ~ scaled inverse chi-squared (freedom, sd^2)."""
    return lambda tau: -freedom * (np.log(tau) + sd**2 / (2 * tau**2))


PRIORS: dict[str, LogPrior] = {
    "inverse chi-squared (2, .0075^2)": inverse_chi_squared(2, ASSUMED_SD),
    "inverse chi-squared (1, .0075^2)": inverse_chi_squared(1, ASSUMED_SD),
    "half-Cauchy (.0075)": half_cauchy(ASSUMED_SD),
    "half-Cauchy (.015)": half_cauchy(PRIOR_SCALE),
}


def main() -> None:
    results = [
        {"prior": name, "degrees_of_freedom": freedom, "run_to_run_sd": sd} | rates(prior, freedom, sd)
        for name, prior in PRIORS.items()
        for freedom in FREEDOMS
        for sd in SDS
    ]
    for one in results:
        print(*one.values())
    write_record("spread_prior", {"results": results})


def rates(prior: LogPrior, freedom: int, tau: float) -> dict[str, float]:
    """Share of intervals that leave out the truth, and the median half-width over that of a known tau."""
    squares = tau**2 * 2 * gammaincinv(freedom / 2, QUANTILES)
    h = np.array([half_width(prior, freedom, one) for one in squares])
    return {
        "left_out": round(float(np.mean(2 * ndtr(-h / tau))), 4),
        "half_width": round(float(np.median(h)) / (tau * float(ndtri(0.975))), 3),
    }


def half_width(prior: LogPrior, freedom: int, squares: float) -> float:
    """The 97.5 % point of N(0, tau^2) over the posterior of tau."""
    log_density = prior(GRID) - freedom * np.log(GRID) - squares / (2 * GRID**2)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    return float(brentq(lambda h: float(weights @ ndtr(-h / GRID)) - 0.025, 1e-6, 5))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
