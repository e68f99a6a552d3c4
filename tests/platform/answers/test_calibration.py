"""What finished runs teach a forecast, against numbers worked out by hand."""

import numpy as np
import pytest

from ablations.answers.calibration import Calibration, PastError


def calibration(*rows, **fields):
    """Of (variant, run, error, distance)."""
    return Calibration(
        errors=tuple(
            PastError(variant=variant, run=run, error=error, carried=2 * error, distance=distance)
            for variant, run, error, distance in rows
        ),
        **fields,
    )


TWO_VARIANTS = (("a", "a0", -0.05, 0.7), ("a", "a1", -0.03, 0.7), ("b", "b0", 0.02, 0.7), ("b", "b1", 0.0, 0.7))


def test_without_finished_runs_nothing_is_added():
    none = Calibration()
    assert (none.num_runs, none.weight) == (0, 0.0)
    assert none.shifts("a", np.array([0.1, 0.7])).tolist() == [0.0, 0.0]
    assert calibration(TWO_VARIANTS[0]).weight == 0.0


def test_a_shift_is_that_of_all_runs_and_of_the_variant_above_all():
    found = calibration(*TWO_VARIANTS)
    assert found.weight == 4 / 8
    of_all = -0.06 / 8
    assert found.shifts("new", np.array([0.7])) == pytest.approx([of_all])
    # m = 2: s = .8 / 1.4
    assert found.shifts("a", np.array([0.7])) == pytest.approx([of_all + 0.8 / 1.4 * (-0.04 - of_all)])
    # Of the others: all = -0.01 / 7, m = 1 with -0.03, s = .4
    assert found.without("a0").shifts("a", np.array([0.7])) == pytest.approx([-0.01 / 7 + 0.4 * (-0.03 + 0.01 / 7)])


def test_errors_count_where_they_were_made():
    found = calibration(("a", "a0", -0.1, 1.2), ("a", "a0", 0.0, 0.35), ("b", "b0", -0.1, 1.2), ("b", "b0", 0.0, 0.35))
    near, far, beyond, between = found.shifts("new", np.array([0.35, 1.2, 50.0, np.sqrt(0.35 * 1.2)]))
    # ln(1.2 / .35) = 1.232, 4.93 standard deviations: a weight of 5e-6
    assert near == pytest.approx(0.0, abs=1e-6)
    assert far == pytest.approx(-0.2 / 6, abs=1e-6)
    assert beyond == pytest.approx(-0.2 / 6, abs=1e-6)
    assert between == pytest.approx(-0.1 / 6)
    # Hundreds are interpolated.
    many = np.geomspace(0.1, 3, 300)
    exact = np.concatenate([found.shifts("new", some) for some in np.split(many, 20)])
    assert found.shifts("new", many) == pytest.approx(exact, abs=1e-4)


def test_quantiles_are_those_of_what_the_other_runs_do_not_explain():
    found = calibration(*(("v" + run, run, error, 0.7) for run, error in (("0", -0.1), ("1", 0.0), ("2", 0.1))))
    # The others add to 0.1, 0 and -0.1, over 2 + 4: -0.1167, 0 and 0.1167; three values end at 1/4 and 3/4.
    assert found.quantiles(np.array([0.01, 0.5, 0.99])) == pytest.approx([-0.7 / 6, 0.0, 0.7 / 6])
    assert found.quantiles(np.array([0.375])) == pytest.approx([-0.35 / 6])
    # |left| sqrt(L)
    assert found.mean_error == pytest.approx(1.4 / 18 * np.sqrt(0.7))


def test_what_foretold_finished_runs_better_is_chosen_from_four_runs_on():
    rng = np.random.default_rng(0)
    rows = [(f"v{run}", f"{run}", float(error), 0.7) for run, error in enumerate(rng.normal(0, 0.02, 8))]
    assert not calibration(*rows).prefers_carried  # here carrying on errs twice as much
    halved = Calibration(
        errors=tuple(
            PastError(variant=variant, run=run, error=error, carried=error / 2, distance=distance)
            for variant, run, error, distance in rows
        )
    )
    assert halved.prefers_carried
    assert not Calibration(errors=halved.errors[:3]).prefers_carried
