"""The paper's method on simulations of its published fits: what it found once must be within what is found here."""

import math

import numpy as np
import pytest
from curves import eq1
from typer.testing import CliRunner

from ablations.cli import app
from ablations.fit.curve import Curve
from ablations.paper.method import METHODS, power_law_ceiling, reproduced
from ablations.paper.published import published


def lines(method):
    return {line.what: line for line in reproduced(method)}


def test_table_1_is_as_published():
    fits = published()
    assert len(fits) == 20
    assert (fits["ScaleRL"].A, fits["ScaleRL"].B, fits["ScaleRL"].C_mid) == (0.610, 1.92, 2542)
    assert (fits["ScaleRL-Scout"].A, fits["ScaleRL math+code, code"].B) == (0.710, 1.09)
    assert pytest.approx(0.09) == fits["FP32 logits"].A - fits["BF16 logits"].A
    assert all(fit.source for fit in fits.values())


def test_a_power_law_is_found_where_it_is_the_law():
    compute = np.arange(0, 20_001, 1000.0)
    score = np.append(0.2, 0.7 - 0.3 * (compute[1:] / 20_000) ** -0.5 * 0.5)
    curve = Curve(name="power law", compute=compute, score=score)
    assert power_law_ceiling(curve, 0, 20_000) == pytest.approx(0.7, abs=1e-4)


def test_the_power_law_has_another_ceiling_in_another_window_and_the_sigmoid_has_not():
    found = lines("law")
    assert found["A, power law on 1.5k to 50k"].median == pytest.approx(1.0, abs=1e-3)  # 1.0 in the paper
    late = found["A, power law on 5k to 50k"]
    assert late.lo <= 0.74 <= late.hi  # 0.74 in the paper
    sigmoids = [found[f"A, sigmoid on {start} to 50k"] for start in ("1.5k", "5k")]
    assert all(one.lo <= 0.645 <= one.hi for one in sigmoids)
    assert abs(sigmoids[0].median - sigmoids[1].median) <= 0.005


def test_a_power_law_over_all_of_a_sigmoid_runs_into_the_end_of_its_range():
    compute = np.arange(0, 50_001, 500.0)
    curve = Curve(name="sigmoid", compute=compute, score=eq1(compute, 0.645, 1.70, 10909))
    assert power_law_ceiling(curve, 1500, 50_000) == pytest.approx(1.0)


def test_the_ceiling_hardly_moves_with_the_window():
    found = lines("cutoff")
    medians = [line.median for what, line in found.items() if what.startswith("A on")]
    assert len(medians) == 4
    assert max(medians) - min(medians) <= 0.01  # 0.645 to 0.655 in the paper
    for what, line in found.items():
        if what.startswith("B on") and "100k" not in what:
            assert line.lo <= float(line.published) <= line.hi


def test_the_first_half_foretells_the_end():
    assert all(abs(line.median) < 0.01 and max(-line.lo, line.hi) < 0.02 for line in reproduced("forecast"))


def test_three_runs_end_within_the_margin():
    (line,) = reproduced("margin")
    # The mean range of three normal values is 1.693 standard deviations (Tippett 1925), here of 0.0075 and of the fit.
    assert line.median < 1.693 * 0.0075 + 0.01
    assert line.hi <= 0.03


def test_every_part_is_a_command():
    for method in METHODS:
        result = CliRunner().invoke(app, ["reproduce", method, "--json"])
        assert result.exit_code == 0, result.output
        assert "median" in result.stdout
    printed = CliRunner().invoke(app, ["reproduce", "law"], env={"COLUMNS": "160"}).stdout
    assert "0.74" in printed
    assert not math.isnan(reproduced("law")[0].median)
