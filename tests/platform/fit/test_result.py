"""How a fit prints: a report of eleven lines, and a name of one."""

import numpy as np

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit


def fitted(*, end: float = 8000.0, is_flat: bool = False) -> Fit:
    """The law of ScaleRL's table 1 with white noise of sd .004, or a flat line with as much."""
    compute = np.arange(0, end + 1, 213.0)
    law = np.append(0.3, 0.3 + 0.31 / (1 + (2542 / compute[1:]) ** 1.92))
    noise = 0.004 * np.random.default_rng(3).standard_normal(compute.size)
    return fit_curve(
        Curve(name="loo-s0", compute=compute, score=(np.full(compute.size, 0.4) if is_flat else law) + noise)
    )


def lines_of(fit: Fit) -> dict[str, str]:
    title, *lines = str(fit).splitlines()
    assert title == "Eq. 1 fitted to 'loo-s0', with 95 % intervals"
    return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}


def test_a_printed_fit_is_a_report_of_eleven_lines():
    fit = fitted()
    assert len(str(fit).splitlines()) == 11
    lines = lines_of(fit)
    ceiling, weight = fit.ceiling, fit.alternatives.weights["sigmoid"]
    assert lines["A"] == f"{ceiling.estimate:.3f} [{ceiling.lo:.3f}, {ceiling.hi:.3f}]"
    assert lines["A_eq1"] == f"{fit.eq1_A:.3f} [{fit.eq1_lo:.3f}, {fit.eq1_hi:.3f}], weight {weight:.2f}"
    assert lines["B"] == f"{fit.B:.2f} [{fit.B_lo:.2f}, {fit.B_hi:.2f}]"
    assert lines["R_0"] == f"{fit.R_0:.3f} [{fit.R_0_lo:.3f}, {fit.R_0_hi:.3f}]"
    assert (lines["window"], lines["points"].split(",")[0]) == ("213 to 7,881", "37")
    assert lines["verdict"] == fit.verdict
