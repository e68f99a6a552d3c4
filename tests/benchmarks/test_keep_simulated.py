"""The record of simulated campaigns holds what docs/keep.md says; a few campaigns, run again, hold the promise."""

import json

import numpy as np
import pytest
from keep_simulated import SPREADS, nothing, run_campaigns
from places import REPOSITORY

RECORD = json.loads((REPOSITORY / "benchmarks/results/keep_simulated.json").read_text())["results"]


def test_at_most_one_keep_is_false_in_95_percent_of_campaigns_whether_asked_always_or_once():
    found = RECORD["nothing"]
    assert {(one["sd"], one["drift"]) for one in found if one["asked"] != "once"} == {
        (sd, drift) for sd in SPREADS for drift in ("none", "line", "wave")
    }
    assert {one["sd"] for one in found if one["asked"] == "once"} == set(SPREADS)
    assert min(one["campaigns_with_at_most_one_false_keep"] for one in found) >= 0.95
    assert max(one["words"]["keep"] for one in found) <= 0.02
    assert max(one["words"]["worse"] for one in found) <= 0.02


def test_runs_until_a_gain_is_kept_are_those_of_the_page():
    medians = {
        (one["effect_in_sd"], one["proposals"], one["place"]): one["median_runs_to_keep"]
        for one in RECORD["one_effect"]
    }
    assert {key: median for key, median in medians.items() if key[0] == 2.0} == {
        (2.0, 200, 31): 4, (2.0, 200, 101): 4, (2.0, 60, 31): 4, (2.0, 40, 21): 4,
    }  # fmt: skip
    assert (medians[1.0, 200, 31], medians[1.0, 60, 31], medians[1.0, 40, 21]) == (12, 12, 8)


def test_a_few_campaigns_hold_the_promise():
    found = nothing(np.random.default_rng(4), 60, sd=0.014, drift="none", is_asked_once=False)
    assert found["campaigns_with_at_most_one_false_keep"] >= 0.9
    assert found["kept_by_best_reading"] == pytest.approx(sum(1 / k for k in range(2, 202)), abs=0.8)  # records of 201


def test_a_large_gain_is_kept_and_becomes_the_best():
    effects = np.zeros((20, 6))
    effects[:, 2] = 8.0
    found = run_campaigns(effects, np.random.default_rng(4), sd=0.014)
    assert np.all(found["words"][:, 2] == 1)
    assert np.mean(found["words"][:, 3:] == 1) < 0.1  # equal to the new best, not to the start
