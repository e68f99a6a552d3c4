"""Scores that a table repeats until the next evaluation count once; coarse scores that repeat by chance all count."""

import numpy as np
import pandas as pd
import pytest
from imported import logs_named, study_of

from ablations.fit.curve import Curve
from ablations.imports.orders import Foreign
from ablations.logs.filled_forward import without_repeats
from ablations.logs.meaning import LogMeaning


def evaluations(seed: int, size: int = 20, answers: int = 2000) -> np.ndarray:
    at = np.arange(size)
    return np.random.default_rng(seed).binomial(answers, 0.2 + 0.4 * at / (at + 5)) / answers


def curve(score) -> Curve:
    return Curve(name="a", compute=np.arange(1.0, 1 + len(score)), score=np.array(score))


def test_a_log_filled_forward_by_pandas_is_read_as_the_one_with_empty_rows(tmp_path):
    sparse = pd.DataFrame({"step": np.arange(1, 401), "hours": np.arange(1, 401) / 10, "acc": np.nan})
    sparse.loc[sparse.step % 20 == 0, "acc"] = evaluations(1)
    sparse.to_csv(tmp_path / "sparse-s0.csv", index=False)
    sparse.assign(acc=sparse.acc.ffill().fillna(0.2)).to_csv(tmp_path / "filled-s0.csv", index=False)
    paths = [tmp_path / "sparse-s0.csv", tmp_path / "filled-s0.csv"]
    right, filled = study_of(logs_named(paths, LogMeaning(score="acc", compute="hours"))).runs
    assert right.warnings == ()
    assert filled.curve.compute[1:] == pytest.approx(right.curve.compute)
    assert filled.curve.score[1:] == pytest.approx(right.curve.score)
    (said,) = filled.warnings
    assert said == (
        "each score stands 20 times in a row, as in a table that was filled forward; the first of each counts, and "
        "379 of 400 scores are left out"
    )


def test_a_column_of_a_wide_table_that_goes_on_after_its_run_is_said(tmp_path):
    table = pd.DataFrame({"step": np.arange(1, 41), "a-s0": evaluations(1, 40), "a-s1": evaluations(2, 40)})
    table.loc[table.step > 10, "a-s1"] = np.nan
    table.ffill().to_csv(tmp_path / "wide.csv", index=False)
    whole, ended = study_of(Foreign(names=(str(tmp_path / "wide.csv"),), meaning=LogMeaning(), naming={})).runs
    assert whole.warnings == ()
    (said,) = ended.warnings
    assert said.startswith(f"the last 31 scores are all {ended.curve.score[9]:g}, while those before seldom repeat")


@pytest.mark.parametrize("answers", [5, 10, 30, 100, 2000])
def test_scores_that_repeat_by_chance_all_count(answers):
    for seed in range(300):
        for size in (12, 30, 80):
            one = curve(evaluations(seed, size, answers))
            found, said = without_repeats(one)
            assert found is one
            assert said == ""


def test_runs_that_end_solved_or_dead_are_left_alone():
    for end in (0.0, 1.0):
        assert without_repeats(curve([*evaluations(1), *[end] * 15]))[1] == ""
