"""What seeds say of how far runs of one recipe lie apart, by quadrature: independent of the grid of the product."""

from collections.abc import Sequence

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import halfcauchy, norm

from ablations.answers.run_to_run import PRIOR_SCALE, Repeats


def quantile_of_offset(share: float, repeats: Sequence[Repeats], scale: float = 1.0) -> float:
    """Of N(0, scale^2 tau^2), tau given the seeds, by quadrature over ln tau; no tau of pass rates exceeds 0.2."""
    prior = halfcauchy(scale=PRIOR_SCALE)

    def density(log_tau: float) -> float:
        found = prior.pdf(np.exp(log_tau)) * np.exp(log_tau)
        for one in repeats:
            total = np.exp(2 * log_tau) + one.own_variance
            found *= (total / 1e-4) ** (-one.freedom / 2) * np.exp(-one.squares / (2 * total))
        return found

    ends = (np.log(1e-4), np.log(0.2))
    whole = quad(density, *ends, limit=400)[0]

    def below(x: float) -> float:
        return quad(lambda u: density(u) * norm.cdf(x / (scale * np.exp(u))), *ends, limit=400)[0] / whole - share

    return float(brentq(below, -1, 1))  # type: ignore[arg-type]


def exact_margin(groups: Sequence[Sequence[float]]) -> float:
    """97.5 % point of how far a run lies off its recipe, of seeds whose own numbers are exact."""
    return quantile_of_offset(0.975, [Repeats.of(group, [0.0] * len(group)) for group in groups])
