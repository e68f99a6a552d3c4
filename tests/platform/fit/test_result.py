"""How a fit prints: a report of eleven lines, and a name of one."""

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("made", "A", "doubt"),
    [
        (fitted(end=2600.0), ">= 0.", "any ceiling above the bound fits the evaluations"),
        (fitted(is_flat=True), "no rise", "a flat line fits as well as a rising curve"),
    ],
    ids=["open", "flat"],
)
def test_a_number_that_means_nothing_is_not_printed_and_the_doubt_is(made, A, doubt):
    lines = lines_of(made)
    assert len(lines) == 10
    assert lines["A"].startswith(A)
    assert f"{made.C_mid:,.0f}" not in lines["C_mid"]
    assert lines["doubts"].startswith(doubt)


def test_in_a_list_a_fit_and_a_curve_are_one_short_line():
    fit = fitted()
    assert repr(fit) == f"<Fit of 'loo-s0': {fit.asymptote}; {fit.verdict}>"
    assert repr(fit.curve) == "<Curve 'loo-s0': 38 evaluations, compute 0 to 7881>"
