"""A study at several scales: from sweeps, from a CSV file, and what is refused."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from fixtures_home import make_home
from simulation import simulate
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.findings.scale_ladder import scale_ladder

TRUTH = {"9e4": (0.60, 0.55, 0.55), "3.5e5": (0.60, 0.55, 0.575), "1.4e6": (0.60, 0.55, 0.60)}
"""A of the reference, of a variant that stays behind, and of one that catches up."""


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """A CSV file of three variants with three seeds at three scales, with a deviation of .008 between runs."""
    path, rng = tmp_path_factory.mktemp("ladder") / "curves.csv", np.random.default_rng(1)
    with path.open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["scale", "curve", "seed", "compute", "score", "samples"])
        for scale in reversed(TRUTH):
            for name, A in zip(("base", "behind", "catching up"), TRUTH[scale], strict=True):
                for seed in range(3):
                    compute = np.arange(0, 8000, 213.0)
                    run = A + rng.normal(0, 0.008)
                    scores = simulate(compute, A=run, B=1.92, C_mid=800, R_0=0.3, rho=0, rng=rng)
                    rows.writerows(
                        [scale, name, seed, x, round(y, 5), 16000]
                        for x, y in zip(compute.tolist(), scores.tolist(), strict=True)
                    )
    return path


def ladder(*arguments):
    return CliRunner().invoke(app, ["ladder", *map(str, arguments)], env={"COLUMNS": "160"})


def test_a_csv_file_with_a_column_scale_is_a_ladder_by_size(curves):
    found = json.loads(ladder(curves, "--reference", "base", "--json").stdout)
    assert [one["parameters"] for one in found["scales"]] == [9e4, 3.5e5, 1.4e6]
    assert found["forecast_at"] == 5_600_000  # four times the largest, as before
    words = {(one["variant"], one["question"]): one["word"] for one in found["differences"]}
    assert {words["behind", question] for question in ("level", "ceiling")} == {"carries"}
    assert {words["catching up", question] for question in ("level", "ceiling")} == {"fades"}
    level = next(one for one in found["differences"] if (one["variant"], one["question"]) == ("behind", "level"))
    assert [rung["scale"] for rung in level["rungs"]] == ["9e4", "3.5e5", "1.4e6"]
    assert all(rung["lo"] < -0.05 < rung["hi"] for rung in level["rungs"][:1])
    assert level["left_out"]["scale"] == "1.4e6"
    compute = next(one for one in found["differences"] if one["question"] == "compute")
    assert all(rung["estimate"] > 1 for rung in compute["rungs"])


def test_sweeps_without_known_sizes_are_in_the_order_given(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    results = read_results(sweep)
    larger = replace(results, plan=replace(results.plan, sweep="loo@larger", scale="larger"))
    found = scale_ladder([results, larger])
    assert [(one.name, one.sweep, one.parameters, one.x) for one in found.scales] == [
        ("laptop", "loo", None, 0.0),
        ("larger", "loo@larger", None, 1.0),
    ]
    assert found.at_text == "one scale further"
    same = found.of("loo-loss", "level")
    assert same.trend.estimate == pytest.approx(0, abs=1e-12)
    assert found.to_json()["differences"][0]["left_out"] is None


def test_what_is_no_ladder_is_refused(tmp_path):
    results = read_results(make_home(tmp_path, seeds=(0, 1)))
    with pytest.raises(AblationsError, match="at two scales or more"):
        scale_ladder([results])
    other = replace(results, plan=replace(results.plan, reference="loo-loss"))
    with pytest.raises(AblationsError, match="must have the same reference; found scalerl, loo-loss"):
        scale_ladder([results, other])
    with pytest.raises(AblationsError, match="two sweeps have scale laptop"):
        scale_ladder([results, results])
    larger = replace(results, plan=replace(results.plan, scale="larger"))
    with pytest.raises(AblationsError, match="--at"):
        scale_ladder([results, larger], at=1e9)
