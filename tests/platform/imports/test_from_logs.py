"""Logs of another trainer are compared as the curves in them are, and what cannot be read is said or refused."""

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from imported import study_of, study_of_logs
from typer.testing import CliRunner
from waiting import wait_until

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.fit.curve_file import read_curves
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning
from ablations.logs.naming import Naming

SCORE = "val-core/openai/gsm8k/acc/mean@4"
CEILINGS = {("grpo", 0): 0.600, ("grpo", 1): 0.604, ("dapo", 0): 0.66, ("dapo", 1): 0.664}
MINUTE_STEPS = 601
EVERY = 20
GPUS = 64


def pass_rate(ceiling: float, hours: float) -> float:
    return 0.2 + (ceiling - 0.2) / (1 + (200 / hours) ** 1.4) + 0.002 * math.sin(hours) if hours else 0.2


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Logs as verl writes them: a minute a step, a score every 20 steps, on 64 GPUs."""
    folder = tmp_path_factory.mktemp("study") / "runs"
    folder.mkdir()
    for (variant, seed), ceiling in CEILINGS.items():
        path = folder / f"{variant}-s{seed}.jsonl"
        with path.open("w") as file:
            for step in range(MINUTE_STEPS):
                row = {"perf/time_per_step": 60.0, "critic/score": 0.5} if step else {}
                if step % EVERY == 0:
                    row[SCORE] = pass_rate(ceiling, step * GPUS / 60)
                file.write(json.dumps({"step": step, "data": row}) + "\n")
        os.utime(path, (time.time() - 60, time.time() - 60))  # a file of this moment is read again by the next command
    return folder


@pytest.fixture(scope="module")
def as_curves(runs):
    """The same as a CSV file of curves, whose compute is worked out by hand: a step is 64 / 60 GPU-hours."""
    path = runs.parent / "curves.csv"
    rows = [
        f"{variant},{seed},{step * GPUS / 60!r},{pass_rate(ceiling, step * GPUS / 60)!r}"
        for (variant, seed), ceiling in CEILINGS.items()
        for step in range(0, MINUTE_STEPS, EVERY)
    ]
    path.write_text("\n".join(["curve,seed,compute,score", *rows]) + "\n")
    return path


def compare(*arguments) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def files(runs) -> list[str]:
    return [str(runs / f"{variant}-s{seed}.jsonl") for variant, seed in CEILINGS]


def test_logs_are_compared_as_a_file_of_their_curves_and_kept(runs, as_curves, tmp_path):
    named = ["--log", "verl", "--gpus", GPUS, "--home", tmp_path]
    theirs = json.loads(compare(*files(runs), *named, "--json"))
    ours = json.loads(compare(as_curves, "--reference", "grpo", "--home", tmp_path / "other", "--json"))
    assert theirs["variants"][1]["ceiling_verdict"] == "ceiling up"
    for one, other in zip(theirs["variants"], ours["variants"], strict=True):
        for key, value in one.items():
            assert value == (pytest.approx(other[key], rel=1e-6) if isinstance(value, float) else other[key]), key
    assert not (tmp_path / "other").exists()

    def is_kept():  # a reading of a log that was written a moment before is not kept
        assert json.loads(compare(*files(runs), *named, "--json")) == theirs
        return len(list((tmp_path / "curves").glob("*/runs/*/readings/*.msgpack"))) == 4

    wait_until(is_kept, "the readings of all four logs")
    said = " ".join(compare(*files(runs), *named, "--explain").split())
    assert "C_mid and cost: GPU-hours." in said
    assert "The reference is grpo, the first variant given; --reference NAME chooses another." in said


def test_the_curves_of_logs_are_written_for_the_commands_that_read_a_file(runs, as_curves, tmp_path):
    named = ["--log", "verl", "--gpus", GPUS, "--home", tmp_path, "--curves", tmp_path / "curves.csv"]
    compare(*files(runs), *named)
    for one, other in zip(read_curves(tmp_path / "curves.csv"), read_curves(as_curves), strict=True):
        assert one.name == other.name
        np.testing.assert_allclose(one.compute, other.compute)
        np.testing.assert_allclose(one.score, other.score)
        assert one.step.tolist() == list(range(0, MINUTE_STEPS, EVERY))
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "curves.csv")], catch_exceptions=False)
    assert "dapo-s1" in result.stdout


def written(path, rows, *, end="") -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + end)
    return str(path)


def study(*paths, naming=None, home=None, **meaning):
    named: dict[str, Any] = {"score": "acc", "compute": "step"} | meaning
    return study_of_logs(paths, LogMeaning(**named), naming, home=home)


ROWS = [{"step": step, "acc": step / 100, "s": 60.0, "ms": 60_000.0, "min": 1.0} for step in range(1, 11)]


def curve_of(tmp_path, rows=ROWS, *, end="", **meaning):
    written(path := tmp_path / "a.jsonl", rows, end=end)
    (run,) = study(path, **meaning).runs
    return run.curve, run.warnings


def test_of_steps_that_a_resumed_run_repeats_the_last_counts_and_this_is_said(tmp_path):
    again = [{"step": step, "acc": 0.9, "s": 30.0} for step in (8, 9, 10)]
    curve, warnings = curve_of(tmp_path, [*ROWS, *again], compute="cumsum(s)")
    assert curve.score.tolist() == [step / 100 for step in range(1, 8)] + [0.9] * 3
    assert curve.compute[-1] == 7 * 60 + 3 * 30
    assert warnings == (left_out(1, reached=10, at=8, rows="3 rows", after=7),)


def left_out(number, *, reached, at, rows, after=None):
    """What is said of an attempt that another replaces in part."""
    since = "" if after is None else f"after step {after} "
    are = "is" if rows == "1 row" else "are"
    return (
        f"attempt {number} reached step {reached} and attempt {number + 1} goes on at {at}, so {rows} {since}of "
        f"attempts before it {are} left out"
    )


def steps_of(*attempts):
    """Rows of a second each, with a score at even steps; each attempt is the range of its steps."""
    return [
        {"step": step, "s": 1.0} | ({"acc": (10 * attempt + step) / 100} if step % 2 == 0 else {})
        for attempt, steps in enumerate(attempts)
        for step in steps
    ]


@pytest.mark.parametrize(
    ("attempts", "scores", "said"),
    [
        # A run begun anew counts once it has come as far; a resumed one that ends early ends the curve.
        ([range(5), range(8)], [0.1, 0.12, 0.14, 0.16], left_out(1, reached=4, at=0, rows="5 rows")),
        ([range(9), range(3, 6)], [0, 0.02, 0.14], left_out(1, reached=8, at=3, rows="6 rows", after=2)),
        ([range(9), range(5)], "the steps begin again at 0 after 8, and end at 4: two runs are in one log", ""),
        ([range(9), range(1, 5)], "the steps begin again at 1 after 8, and end at 4", ""),
        ([range(5), range(5)], "the steps begin again at 0 after 4, and end at 4: two runs", ""),
    ],
)
def test_attempts_in_one_log_are_one_run_or_are_refused(tmp_path, attempts, scores, said):
    rows = steps_of(*attempts)
    if 1 in attempts[-1] and 0 not in attempts[-1]:
        rows = [row for row in rows if row["step"] or "acc" in row]
        rows[0].pop("s")  # as verl's validation before training
    if isinstance(scores, str):
        with pytest.raises(AblationsError, match=scores):
            curve_of(tmp_path, rows, compute="cumsum(s)")
        return
    curve, warnings = curve_of(tmp_path, rows, compute="cumsum(s)")
    assert curve.score == pytest.approx(scores)
    assert curve.compute.tolist() == list(range(1, 2 * len(scores), 2))
    assert warnings == (said,)


def test_rows_that_were_written_twice_count_once(tmp_path):
    curve, warnings = curve_of(tmp_path, 2 * steps_of(range(5)), compute="cumsum(s)")
    assert (curve.score.tolist(), curve.compute.tolist()) == ([0, 0.02, 0.04], [1, 3, 5])
    assert warnings == (left_out(1, reached=4, at=0, rows="5 rows"),)


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        # The counter begins again at step 4; between the evaluations at 3 and 6 it has passed its last value.
        ({1: 1, 3: 3, 4: 0.5, 6: 3.5}, "compute 0.5 comes after 3; compute must increase, with one score per value "
         r"\(steps 3 and 4\); for a counter x that begins .* write cumsum\(where\(diff\(x\) > 0, diff\(x\), x\)\)$"),
        ({1: 1, 3: 3, 6: 3}, r"compute 3 comes after 3; .* \(steps 3 and 6\)$"),
        ({1: 1, 2: 2.5, 3: 2.4, 6: 7}, None),
        ({2: 1, 4: 2}, r"no step has both score and compute; .* \(score at 1, 3, 6, compute at 2, 4\)$"),
    ],
)  # fmt: skip
def test_compute_that_begins_again_is_found_between_evaluations_too(tmp_path, hours, said):
    rows = [{"step": step, "hours": hour} for step, hour in hours.items()]
    rows += [{"step": step, "acc": step / 100} for step in (1, 3, 6)]
    if said is None:
        assert curve_of(tmp_path, rows, compute="hours")[0].compute.tolist() == [1, 2.4, 7]
        return
    with pytest.raises(AblationsError, match=said):
        curve_of(tmp_path, rows, compute="hours")
    if "counter" in said:
        total = curve_of(tmp_path, rows, compute="cumsum(where(diff(hours) > 0, diff(hours), hours))")[0].compute
        assert total.tolist() == [1, 3, 6.5]


def test_texts_for_a_missing_value_are_none_and_a_negative_time_is_noticed(tmp_path):
    rows = [{"step": step, "acc": acc, "s": s} for step, (acc, s) in enumerate(
        [(".1", 1), ("None", 1), ("NA", -0.5), ("-", 1), ("null", 1), (".2", 1), ("n/a", 1)], start=1
    )]  # fmt: skip
    curve, warnings = curve_of(tmp_path, rows, compute="cumsum(s)")
    assert (curve.score.tolist(), curve.compute.tolist()) == ([0.1, 0.2], [1, 4.5])
    assert warnings == ("s is negative 1 time",)


@pytest.mark.parametrize("missing", [None, math.nan, "NaN", "-"])
@pytest.mark.parametrize("every", [1, 5])
def test_a_score_whose_step_has_no_time_is_left_out_if_it_would_have_the_compute_of_another(tmp_path, missing, every):
    rows = [{"step": step, "s": 2.0} | ({"acc": step / 100} if step % every == 0 else {}) for step in range(1, 41)]
    rows[25]["s"] = missing
    curve, warnings = curve_of(tmp_path, rows, compute="cumsum(s)")
    left = [step for step in range(every, 41, every) if step != 26]
    assert curve.score.tolist() == [step / 100 for step in left]
    assert curve.compute.tolist() == [2 * step - 2 * (step > 26) for step in left]
    said = [one for one in warnings if "left out, since the time" in one]
    assert said == (
        ["1 of 40 evaluations left out, since the time of their step is missing (at 26)"] if every == 1 else []
    )
    assert (
        sum(one.startswith("s is missing at 1 step up to step 40, the first of them 26, so") for one in warnings) == 1
    )


def test_a_history_that_was_cut_or_thinned_is_noticed_and_one_that_lacks_much_is_refused(tmp_path):
    rows = [{"step": step, "acc": step / 100, "s": 60.0} for step in range(1, 41) if step not in (4, 5)]
    curve, (warning,) = curve_of(tmp_path, rows, compute="cumsum(s)")
    assert warning.startswith("s is missing at 2 steps up to step 40, the first of them 4, so the compute is too low")
    assert curve.compute[-1] == 38 * 60
    for few in (rows[1:], rows[10:]):
        with pytest.raises(
            AblationsError, match=r"a\.jsonl: s is missing at \d+ steps up to step 40.* export the whole"
        ):
            curve_of(tmp_path, few, compute="cumsum(s)")
        curve_of(tmp_path, few, compute="step")


@pytest.mark.parametrize(
    ("meaning", "said"),
    [
        ({"score": "ac"}, "a.jsonl: --score: no column 'ac'; did you mean 'acc'? columns are: acc, min, ms, s, step"),
        ({"score": "acc * 1000"}, "score is 10; a pass rate must lie in [0, 1]"),
        ({"compute": "0 * s"}, "compute 0 comes after 0; compute must increase"),
        ({"score": "where(acc < 0, acc)"}, "no step has both score and compute; see --score and --compute"),
        ({"gpus": 8.0}, "--gpus has no effect with --compute"),
        ({"trainer": "verll"}, "--log: no trainer 'verll'; did you mean 'verl'? trainers are: verl, prime-rl, slime"),
        (
            {"trainer": "verl", "score": None},
            "--log verl: no column val-core/<data set>/<reward or acc>/mean@<k> or val/test_score/",
        ),
    ],
)
def test_what_a_log_does_not_have_is_refused_with_what_is_there(tmp_path, meaning, said):
    with pytest.raises(AblationsError) as raised:
        curve_of(tmp_path, **meaning)
    assert said in str(raised.value)


METHODS = {("dapo", "0"): 0.01, ("dapo", "1"): 0.02, ("grpo", "0"): 0.03}


def of_methods(header: str, row: str) -> str:
    """A table with ten rows of each run, whose score grows by its value each hour."""
    rows = [row.format(*run, hour, each * hour) for run, each in METHODS.items() for hour in range(1, 11)]
    return "\n".join([header, *rows]) + "\n"


CHART = "\n".join(
    [
        ",".join(["Step", *(f"{n}-s{s} - acc{end}" for n, s in METHODS for end in ("", "__MIN", "__MAX"))]),
        *(
            ",".join([f"{hour}", *(f"{each * hour}" for each in METHODS.values() for _ in "123")])
            for hour in range(1, 11)
        ),
    ]
)


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (of_methods("method,seed,hours,acc", "{},{},{},{}"), {"compute": "hours", "naming": ("method", "seed")}),
        (of_methods("method,seed,step,acc", "{},seed {},{},{}"), {"compute": "step", "naming": ("method", "seed")}),
        (of_methods("run,step,acc", "{}-{},{},{}"), {"compute": "step", "naming": ("run", None)}),
        (CHART, {"compute": "Step", "score": "acc"}),
        ("\n".join(",".join(line.split(",")[:1] + line.split(",")[1::3]) for line in CHART.split("\n")),
         {"compute": "Step", "score": "acc"}),
    ],
)  # fmt: skip
def test_the_runs_of_one_table_are_told_apart_by_columns_or_have_a_column_each(tmp_path, content, columns):
    (path := tmp_path / "a.csv").write_text(content)
    variant, seed = columns.pop("naming", (None, None))
    runs = study(path, naming=Naming(variant=variant, seed=seed), **columns).runs
    named = [("dapo-0", 0), ("dapo-1", 0), ("grpo-0", 0)] if variant == "run" else [(n, int(s)) for n, s in METHODS]
    assert [(run.variant, run.seed) for run in runs] == named
    for run, each in zip(runs, METHODS.values(), strict=True):
        assert run.curve.score == pytest.approx([each * hour for hour in range(1, 11)])
        assert run.curve.compute.tolist() == list(range(1, 11))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (of_methods("method,seed,step,acc", "{},{},{},{}"), "differ in column 'method': dapo, grpo; name the columns"),
        (of_methods("who,seed,step,acc", "7,{1},{2},{3}"), "rows of one step differ in column 'seed': 0, 1; name the"),
        (of_methods("method,seed,hours,acc", "{},{},{},{}"), "no column of steps, and rows differ in 'method'"),
        # The second run is shorter than half of the first.
        ("method,step,acc\n" + "".join(f"{name},{step},.1\n" for name, n in (("dapo", 20), ("grpo", 3))
                                       for step in range(1, n + 1)), "of one step differ in column 'method': dapo"),
        ("step,acc\n" + "".join(f"0,.{acc}\n" for acc in range(1, 5)), "all 4 values of acc are at step 0, as if no "),
        ("step,acc\n1,50%\n", "'50%' in line 2; use a column of numbers; divide percent by 100"),
        ("step,acc\n1,1\n2,31.5\n", "a.csv: curve 'a', evaluation 2: score is 31.5; a pass rate must lie in [0, 1]"),
        ("step,acc\n" + "".join(f"{step},{acc}\n" for step in range(1, 5) for acc in (0.1, 0.6)),
         "acc has two values at 4 of 4 steps, 0.1 and 0.6 at step 1, and no step goes back as after a "),
        # Rows of training and of evaluation, and of two data sets, at different steps.
        ("step,phase,acc\n" + "".join(f"{step},{'train' if step % 4 else 'val'},.{step}\n" for step in range(1, 9)),
         "acc is in rows of several kinds by column 'phase': train, val; keep the rows of one"),
        ("step,info.dataset,acc\n" + "".join(f"{step},{('aime', 'math')[step % 2]},.{step}\n" for step in range(1, 9)),
         "acc is in rows of several kinds by column 'info.dataset': aime, math; keep the rows of one"),
    ],
)  # fmt: skip
def test_runs_or_data_sets_are_never_merged_into_one_curve(tmp_path, content, said):
    (path := tmp_path / "a.csv").write_text(content)
    with pytest.raises(AblationsError) as raised:
        study(path, compute="hours" if "hours" in content else "step")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("column", "words"), [("stage", ["warmup"] * 4 + ["rl"] * 6), ("status", ["same", "better"] * 5)]
)
def test_words_that_tell_no_evaluations_apart_are_no_kinds_of_rows(tmp_path, column, words):
    rows = [row | {column: word} for row, word in zip(ROWS, words, strict=True)]
    curve, warnings = curve_of(tmp_path, rows)
    assert (curve.score.tolist(), warnings) == ([step / 100 for step in range(1, 11)], ())


def test_a_score_that_ends_long_before_its_log_is_noticed(tmp_path):
    rows = [{"step": step, "s": 60.0} | ({"acc": step / 100} if step <= 20 else {}) for step in range(1, 41)]
    _, (warning,) = curve_of(tmp_path, rows, compute="cumsum(s)")
    assert warning.startswith(
        "the score ends at step 20, but the log at 40; if the metric has two names, write --score"
    )


def test_a_score_that_is_nan_to_the_end_is_not_said_to_have_another_name(tmp_path):
    score = [step / 100 if step <= 20 else math.nan for step in range(1, 41)]
    rows = [{"step": step, "s": 60.0, "acc": one} for step, one in enumerate(score, start=1)]
    _, (count, warning) = curve_of(tmp_path, rows, compute="cumsum(s)")
    assert count == "acc was logged as NaN 20 times; these values are left out"
    assert warning == (
        "the score is NaN from step 21 to 40: the model may have diverged; the curve ends at step 20, which may "
        "flatter this run"
    )


@pytest.mark.parametrize("command", ["compare", "fit", "forecast"])
def test_a_log_in_place_of_a_sweep_is_answered_with_the_options_that_read_it(tmp_path, command):
    written(path := tmp_path / "a.jsonl", ROWS)
    result = CliRunner().invoke(app, [command, str(path), "--home", str(tmp_path)])
    assert "not a sweep; `platform import` turns" in str(result.exception)


def test_a_run_that_cannot_be_read_is_left_out_and_named(tmp_path):
    paths = [tmp_path / f"{name}.jsonl" for name in "ab"]
    written(paths[0], ROWS)
    written(paths[1], [{"step": 1, "other": 1.0}])
    found = study(*paths)
    assert [run.name for run in found.runs] == ["a-s0"]
    (note,) = found.notes
    assert note.startswith(f"A run is left out: {paths[1]}: --score: no column 'acc'")
    shown = " ".join(compare(*paths, "--score", "acc", "--compute", "step", "--home", tmp_path).split())
    assert "b.jsonl: --score: no column 'acc'" in shown  # without --explain


def test_variant_and_seed_are_told_by_the_name(tmp_path):
    usual = {
        "dapo-s3": ("dapo", 3),
        "dapo_seed4": ("dapo", 4),
        "loss=a,seed=2": ("loss=a", 2),
        "grpo.v2-s1_20261120-101500": ("grpo.v2", 1),
        "a_seed3_lr1e-6": ("a_lr1e-6", 3),
        "dapo_Seed5": ("dapo", 5),
        "dapo-SEED=6": ("dapo", 6),
        "dapo seed 7": ("dapo", 7),
        "dapo (seed 8)": ("dapo", 8),
        "dapo__seed__9": ("dapo", 9),
        "seed1_dapo-lr1e-6": ("dapo-lr1e-6", 1),
        "grpo_bs128": ("grpo_bs128", 0),
        "s1-32b": ("s1-32b", 0),
        "grpo-s0.5": ("grpo-s0.5", 0),  # a strength of 0.5, not seed 0
        "grpo-s1.5": ("grpo-s1.5", 0),
        "grpo-s1-0.01": ("grpo-s1-0.01", 0),
        "grpo-s1_2026-11-20_10.15.00": ("grpo", 1),
        "plain": ("plain", 0),
    }
    paths = [tmp_path / f"{name}.jsonl" for name in usual]
    for path in paths:
        written(path, ROWS)
    assert {Path(run.place).stem: (run.variant, run.seed) for run in study(*paths).runs} == usual


def test_a_pattern_or_the_configuration_tells_variant_and_seed(tmp_path):
    names = ("dapo-s3", "dapo_seed4", "loss=a,seed=2", "grpo.v2-s1_20261120-101500", "a_seed3_lr1e-6", "plain")
    paths = [tmp_path / f"{name}.jsonl" for name in names]
    for path in paths:
        written(path, [row | {"loss": "cispo", "run": 7} for row in ROWS])
    naming = Naming(pattern=r"(?P<variant>[a-z]+).*?(?P<seed>\d+)?")
    assert [run.variant for run in study(*paths, naming=naming).runs] == ["dapo", "dapo", "loss", "grpo", "a", "plain"]
    (run,) = study(paths[0], naming=Naming(variant="loss", seed="run")).runs
    assert (run.variant, run.seed, run.start) == ("cispo", 7, "seed 7")


@pytest.mark.parametrize(
    ("naming", "said"),
    [
        (Naming(pattern="(?P<variant"), "--pattern '(?P<variant': missing >, unterminated name at position 4"),
        (Naming(pattern="x-(?P<variant>.*)"), "the name 'a' does not match --pattern 'x-(?P<variant>.*)'"),
        (Naming(seed="loss"), "found seed 'dapo'; a seed is a whole number"),
        (Naming(variant="nothing"), "a.jsonl: column 'nothing' is empty in line 1; name every run"),
    ],
)
def test_a_run_that_does_not_tell_its_variant_is_refused(tmp_path, naming, said):
    written(path := tmp_path / "a.jsonl", [row | {"loss": "dapo", "nothing": None} for row in ROWS])
    with pytest.raises(AblationsError) as raised:
        study(path, naming=naming)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("names", "told", "said"),
    [
        (("dapo s1", "dapo (seed 2)"), [("dapo", 1), ("dapo", 2)], "Seeds are those in the names of the curves"),
        (
            ("dapo-s1", "base"),
            [("dapo-s1", 0), ("base", 0)],
            "Every curve counts as a variant, since 'base' names no s",
        ),
        (("dapo", "base"), [("dapo", 0), ("base", 0)], ""),
    ],
)
def test_seeds_in_the_names_of_curves_count_if_all_have_one(tmp_path, names, told, said):
    rows = [f"{name},{hour},.5\n" for name in names for hour in (1, 2)]
    (path := tmp_path / "curves.csv").write_text("".join(["curve,compute,score\n", *rows]))
    found = study_of(Foreign(names=(str(path),)))
    assert [(run.variant, run.seed) for run in found.runs] == told
    assert "".join(found.notes).startswith(said)
    assert bool(found.notes) == bool(said)


def test_two_runs_with_one_variant_and_seed_are_refused_and_runs_without_a_seed_are_numbered(tmp_path):
    names = ["a/dapo.jsonl", "b/dapo.jsonl", "a/dapo-s0.jsonl"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        written(tmp_path / name, ROWS)
    runs = study(*(tmp_path / name for name in names)).runs
    assert [run.seed for run in runs] == [1, 2, 0]
    # A run without a seed beside those that have one may be their mean.
    assert runs[0].warnings == (
        f"{tmp_path}/a/dapo.jsonl has no seed, as other runs of dapo have, and counts as seed 1",
    )
    # Runs whose names are all the same are told by the folders that differ.
    assert [run.name for run in study(*(tmp_path / name for name in names[:2])).runs] == ["a-s0", "b-s0"]
    below = [f"{name}/{seed}/run.jsonl" for name in ("dapo", "grpo") for seed in ("seed1", "seed2", "0")]
    for name in below:
        (tmp_path / name).parent.mkdir(parents=True)
        written(tmp_path / name, ROWS)
    told = [(run.variant, run.seed) for run in study(*(tmp_path / name for name in below)).runs]
    assert told == [("dapo", 1), ("dapo", 2), ("dapo-0", 0), ("grpo", 1), ("grpo", 2), ("grpo-0", 0)]
    (tmp_path / "b" / "dapo-s0.jsonl").write_text('{"step": 7, "s": 1.0}')  # a part without a score counts too
    with pytest.raises(AblationsError, match=r"a/dapo-s0\.jsonl and .*b/dapo-s0\.jsonl are both dapo, seed 0; tell"):
        study(*(tmp_path / folder / "dapo-s0.jsonl" for folder in "ab"))


def test_one_log_under_two_names_and_a_second_part_that_counts_as_a_seed_are_said(tmp_path):
    for name, rows in {"a/dapo": ROWS[:5], "b/dapo": ROWS[5:], "grpo-s1": ROWS, "grpo-s2": ROWS}.items():
        (path := tmp_path / f"{name}.jsonl").parent.mkdir(exist_ok=True)
        written(path, rows)
    paths = [tmp_path / f"{name}.jsonl" for name in ("a/dapo", "b/dapo", "grpo-s1", "grpo-s2")]
    first, second, *_ = study(*paths).runs
    said = f"{paths[1]} begins at step 6, after {paths[0]} ends at 5; if they are parts of one run, join them"
    assert (first.warnings, second.warnings) == ((), (said,))
    shown = " ".join(compare(*reversed(paths), "--score", "acc", "--compute", "step", "--home", tmp_path).split())
    assert "grpo-s2 and grpo-s1 have the same evaluations; one log may appear under two names, or the seed " in shown
    assert shown.count("have the same evaluations") == 1


def test_runs_whose_times_are_in_milliseconds_or_whose_scores_are_divided_twice_are_said_below_the_comparison(tmp_path):
    for seed in range(2):
        for variant, ms, percent in (("base", 1, 100), ("slow", 1000, 100), ("small", 1, 1)):
            rng = np.random.default_rng(seed)
            rows = [
                {"step": step}
                | ({"perf/time_per_step": 60 * ms} if step else {})
                | ({SCORE: percent * (0.3 + 0.3 * step / (step + 40) + rng.normal(0, 0.01))} if step % 10 == 0 else {})
                for step in range(121)
            ]
            written(tmp_path / f"{variant}-s{seed}.jsonl", rows)
    named = ["--log", "verl", "--gpus", 60, "--score", f"{SCORE} / 100", "--reference", "base"]
    shown = " ".join(compare(*sorted(tmp_path.glob("*.jsonl")), *named, "--home", tmp_path).split())
    assert "slow: 2 of 2 seeds took 1,000 times more compute a step than the other runs (1,000 against 1 GPU-h" in shown
    assert "The scores before training differ from that of base, 0.302: small 0.003. Look for another unit" in shown
    imported = ["import", *map(str, sorted(tmp_path.glob("*.jsonl"))), *map(str, named), "--as", "odd"]
    assert CliRunner().invoke(app, [*imported, "--home", str(tmp_path)]).exit_code == 0
    for command in ("forecast", "paper"):  # they use the same curves
        said = " ".join(CliRunner().invoke(app, [command, "odd", "--home", str(tmp_path)]).stdout.split())
        assert "slow: 2 of 2 seeds took 1,000 times more compute a step than the other runs" in said


def test_scores_of_different_columns_are_said_with_the_variants_of_each(tmp_path):
    for variant, score in (("a", SCORE), ("b", "val-core/aime/acc/mean@32"), ("c", SCORE)):
        rows = [{"step": step, "perf/time_per_step": 60} | ({score: step / 200} if step % 10 == 0 else {})
                for step in range(101)]  # fmt: skip
        written(tmp_path / f"{variant}-s0.jsonl", rows)
    found = study_of_logs(sorted(tmp_path.glob("*.jsonl")), LogMeaning(trainer="verl", gpus=1))
    assert found.notes[0] == (
        f"The scores come from 2 columns: {SCORE} in a, c; val-core/aime/acc/mean@32 in b. Unless they are of one "
        "held-out set, differences between runs are differences between sets; choose a column that all runs have with "
        "--score."
    )
    one = study_of_logs([tmp_path / "a-s0.jsonl", tmp_path / "c-s0.jsonl"], LogMeaning(trainer="verl", gpus=1))
    assert one.notes == ()


def test_a_reward_of_trl_that_is_the_sum_of_other_functions_is_another_score(tmp_path):
    for variant, more in (("a", {}), ("b", {"eval_rewards/format/mean": 0.1})):
        rows = []
        for step in range(1, 101):
            rows.append({"step": step, "step_time": 60.0, "reward": 0.5})
            if step % 10 == 0:
                score = {"eval_rewards/acc/mean": step / 200} | more
                rows.append({"step": step, "eval_reward": sum(score.values())} | score)
        written(tmp_path / f"{variant}-s0.jsonl", rows)
    paths = sorted(tmp_path.glob("*.jsonl"))
    found = study_of_logs(paths, LogMeaning(trainer="trl", gpus=1, score="eval_reward"))
    assert found.notes[0].startswith(
        "The scores come from 2 columns: eval_reward (of eval_rewards/acc/mean) in a; eval_reward (of "
        "eval_rewards/acc/mean, eval_rewards/format/mean) in b. Unless"
    )
    assert study_of_logs(paths, LogMeaning(trainer="trl", gpus=1, score="eval_rewards/acc/mean")).notes == ()


@pytest.mark.parametrize("score", ["acc / 100", "0.01 * acc"])
def test_a_fraction_that_is_divided_by_100_is_said_and_percent_are_not(tmp_path, score):
    fractions = [{"step": step, "acc": step / 50} for step in range(1, 41)]
    _, warnings = curve_of(tmp_path, fractions, score=score)
    assert warnings == (
        "acc is at most 0.8, so it may be a fraction already, and --score divides it by 100; if so, write the column "
        "alone",
    )
    percent = [{"step": step, "acc": 2.0 * step} for step in range(1, 41)]
    assert curve_of(tmp_path, percent, score=score)[1] == ()


def test_a_log_that_continues_another_is_left_out_with_the_advice_to_join_both(tmp_path):
    rows = [{"step": step, "s": 60.0, "acc": step / 100} for step in range(41, 81)]
    with pytest.raises(
        AblationsError, match=r"the first of them 1, .* whole history, join it with the log that it continues"
    ):
        curve_of(tmp_path, rows, compute="cumsum(s)")


def test_a_longer_run_that_is_seldom_evaluated_is_not_compared_by_lines_between_far_evaluations(tmp_path):
    """Both variants follow one curve; one is evaluated every 10 of 200 steps, the other every 400 of 4,000."""
    for variant, last, every in (("often", 200, 10), ("seldom", 4000, 400)):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            rows = [{"step": step, "acc": 0.2 + 0.5 * step / (step + 100) + rng.normal(0, 0.01)}
                    for step in range(0, last + 1, every)]  # fmt: skip
            written(tmp_path / f"{variant}-s{seed}.jsonl", rows)
    named = ["--score", "acc", "--compute", "step", "--home", tmp_path]
    shown = " ".join(compare(*sorted(tmp_path.glob("*.jsonl")), *named).split())
    assert "seldom: 2 of 2 seeds have too few evaluations up to 200 steps for a level." in shown
    found = json.loads(compare(*sorted(tmp_path.glob("*.jsonl")), *named, "--json"))["variants"][1]
    assert (found["curve"], found["level"], found["level_verdict"]) == ("seldom", None, "cannot tell")
    assert (
        "seldom has too few evaluations up to 200 steps for a level, and neither seeds nor budget add any there: "
        "evaluate it more often."
    ) in shown
    assert "would settle the level" not in shown


def test_what_score_and_compute_are_made_of_names_expressions_gpus_and_the_rewards_of_a_sum():
    columns = ["eval_reward", "eval_rewards/acc/mean", "step_time"]
    trl = LogMeaning(trainer="trl", gpus=8, score="eval_reward").described(columns)
    assert trl == {"score": "eval_reward (of eval_rewards/acc/mean)", "compute": "step_time with --gpus 8"}
    own = LogMeaning(score="(a + b) / 2", compute="cumsum(s)").described(["a", "b", "s"])
    assert own == {"score": "(a + b) / 2, from a, b", "compute": "cumsum(s)"}


def test_a_column_with_the_best_score_so_far_is_said_in_the_comparison(tmp_path):
    for variant, shown in (("each", np.array), ("best", np.maximum.accumulate)):
        for seed in range(2):
            rng, step = np.random.default_rng(seed), np.arange(60)
            curve = shown(0.2 + 0.5 * step / (step + 50) + rng.normal(0, 0.01, 60))
            written(
                tmp_path / f"{variant}-s{seed}.jsonl",
                [{"step": at, "acc": one} for at, one in enumerate(curve.tolist())],
            )
    named = ["--score", "acc", "--compute", "step", "--reference", "each", "--home", tmp_path]
    shown = " ".join(compare(*sorted(tmp_path.glob("*.jsonl")), *named).split())
    assert "best: the score of 2 of 2 seeds may be the best so far (seeds 0, 1: it repeats and never falls)" in shown
    assert "each: the score of" not in shown


def test_runs_whose_scores_are_nan_to_the_end_are_not_to_be_continued(tmp_path):
    for variant, last in (("sound", 100), ("diverged", 40)):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            curve = [0.2 + 0.5 * step / (step + 50) + rng.normal(0, 0.01) for step in range(101)]
            rows = [{"step": step, "acc": one if step <= last else math.nan} for step, one in enumerate(curve)]
            written(tmp_path / f"{variant}-s{seed}.jsonl", rows)
    named = ["--score", "acc", "--compute", "step", "--reference", "sound", "--home", tmp_path]
    shown = " ".join(compare(*sorted(tmp_path.glob("*.jsonl")), *named).split())
    assert "The scores of diverged are NaN to the end: find out whether the model or its evaluation broke" in shown
    assert "continue them" not in shown


def test_a_log_that_has_changed_is_read_again_and_no_other_is(tmp_path):
    """What was read is only believed once the file is at rest, and is made again if it is damaged."""
    path, home = tmp_path / "a.jsonl", tmp_path / "home"

    def scores(rows, age):
        written(path, rows)
        os.utime(path, ns=(time.time_ns() - age, time.time_ns() - age))
        (run,) = study(path, home=home).runs
        return run.curve.score.tolist()

    assert scores(ROWS, age=10**10) == [step / 100 for step in range(1, 11)]
    (log,) = home.glob("runs/*/metrics.jsonl")
    before = log.stat().st_mtime_ns
    study(path, home=home)
    assert log.stat().st_mtime_ns == before
    changed = [row | {"acc": 0.5} for row in ROWS]
    assert scores(changed, age=-(10**11)) == [0.5] * 10  # not at rest
    assert scores([row | {"acc": 0.6} for row in ROWS], age=-(10**11)) == [0.6] * 10
    for one in home.glob("sweeps/*/sources.json"):
        one.write_bytes(one.read_bytes()[:50])
    assert scores(changed, age=9 * 10**9) == [0.5] * 10
