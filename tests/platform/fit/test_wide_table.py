"""Tables with a column for each run are read as tables with a row for each reading, or refused if they may not be."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import FileError
from ablations.fit.curve_file import read_curves, table_of_curves

STEPS = np.arange(0, 60, 4)
RUNS = {"dapo-s0": 0.62, "dapo-s1": 0.61, "grpo-s0": 0.55, "grpo-s1": 0.56}


def long_table() -> pd.DataFrame:
    """Readings of four runs, of which one is evaluated half as often and begins later."""
    of_runs = [
        pd.DataFrame({"curve": name, "compute": STEPS, "score": np.round(0.1 + top * STEPS / (STEPS + 9), 6)})
        for name, top in RUNS.items()
    ]
    of_runs[3] = of_runs[3].iloc[2::2]
    return pd.concat(of_runs)


def wide_table(**names) -> pd.DataFrame:
    """The same with a column for each run, as pandas pivots it; `names` are new names of columns."""
    wide = long_table().pivot(index="compute", columns="curve", values="score")
    return wide.reset_index().rename(columns={"compute": "step"} | names)


def result_of(*arguments: str):
    result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def test_a_column_for_each_run_holds_the_curves_of_a_row_for_each_reading(tmp_path):
    long_table().to_csv(tmp_path / "long.csv", index=False)
    wide_table().to_csv(tmp_path / "wide.csv", index=False)
    assert tmp_path.joinpath("wide.csv").read_text().splitlines()[1].endswith(",")  # a run lacks the first reading
    wide, long = read_curves(tmp_path / "wide.csv"), read_curves(tmp_path / "long.csv")
    assert [one.name for one in wide] == [*RUNS]
    for one, other in zip(wide, long, strict=True):
        assert one.compute.tolist() == other.compute.tolist()
        assert one.score.tolist() == other.score.tolist()


def test_a_wide_table_is_compared_fitted_and_imported_as_the_long_one(tmp_path):
    long_table().to_csv(tmp_path / "long.csv", index=False)
    wide_table().to_csv(tmp_path / "wide.csv", index=False)
    wide, long = (json.loads(result_of("compare", str(tmp_path / f"{name}.csv"), "--json").stdout) for name in KINDS)
    assert wide["variants"] == long["variants"]
    assert [(run["variant"], run["seed"]) for run in wide["runs"]] == [
        ("dapo", 0),
        ("dapo", 1),
        ("grpo", 0),
        ("grpo", 1),
    ]
    fits = [json.loads(result_of("fit", str(tmp_path / f"{name}.csv"), "--json").stdout) for name in KINDS]
    assert [one["A"] for one in fits[0]] == [one["A"] for one in fits[1]]
    home = ("--home", str(tmp_path / "home"))
    said = result_of("import", str(tmp_path / "wide.csv"), *home).output
    assert "Compute is the column 'step', so a step counts the same in every run." in said
    assert "Seeds are those in the names of the curves" in said
    assert "C_mid and cost: steps." in result_of("compare", "wide", *home, "--explain").output


KINDS = ("wide", "long")


def test_a_column_without_a_seed_is_the_first_run_of_its_variant(tmp_path):
    wide_table(**{"grpo-s0": "base"}).to_csv(tmp_path / "wide.csv", index=False)
    found = json.loads(result_of("compare", str(tmp_path / "wide.csv"), "--json").stdout)
    assert [(run["variant"], run["seed"]) for run in found["runs"]] == [
        ("dapo", 0),
        ("dapo", 1),
        ("base", 0),
        ("grpo", 1),
    ]


def test_a_backtest_of_a_table_needs_no_reference(tmp_path):
    wide_table().to_csv(tmp_path / "wide.csv", index=False)
    said = json.loads(result_of("forecast", str(tmp_path / "wide.csv"), "--backtest", "--json").stdout)
    ends = {name: round(0.1 + RUNS[name] * float(np.mean(STEPS[-3:] / (STEPS[-3:] + 9))), 3) for name in [*RUNS][:3]}
    checked = {one["curve"]: one["measured"] for one in said["checks"] if one["fraction"] == 0.7}
    assert {name: round(checked[name], 3) for name in ends} == ends


def test_a_chart_of_wandb_is_read_without_the_ends_of_its_means(tmp_path):
    head = ["train/global_step"]
    for run in ("Qwen2.5-0.5B-p2b4-01182022", "Group: Qwen2.5-0.5B-p1b4"):
        for metric in ("_step", "val-core/GSM8K/reward/mean@1"):
            head += [f"{run} - {metric}{end}" for end in ("", "__MIN", "__MAX")]
    rows = [
        ["0", *["0"] * 3, *["0.1"] * 3, *["0"] * 3, "0.2", "0.1", "0.3"],
        ["5", *["5"] * 3, *["0.4"] * 3, *[""] * 6],
    ]
    lines = [",".join(f'"{one}"' for one in row) for row in (head, *rows)]
    (path := tmp_path / "wandb_export.csv").write_text("\n".join(lines))
    first, second = read_curves(path)
    assert (first.name, second.name) == ("Qwen2.5-0.5B-p2b4-01182022", "Group=Qwen2.5-0.5B-p1b4")
    assert (first.compute.tolist(), first.score.tolist()) == ([0, 5], [0.1, 0.4])
    assert (second.compute.tolist(), second.score.tolist()) == ([0], [0.2])
    table = table_of_curves(path)
    assert table.compute_name == "steps"
    assert table.notes[1:] == (
        "W&B has averaged values, of grouped runs or of neighbouring steps; __MIN and __MAX differ.",
    )
    path.write_text(path.read_text().replace('"0.1","0.3"', '"0.2","0.2"'))
    assert len(table_of_curves(path).notes) == 1


@pytest.mark.parametrize(
    ("text", "unit", "curves"),
    [
        ("GPU-hours,a,b\n1,.1,\n2,.2,.3\n", "GPU-hours", {"a": ([1, 2], [0.1, 0.2]), "b": ([2], [0.3])}),
        ("Step;gpu_hours;lr-1e-5;no_kl\n0;0;0,1;0,2\n", "gpu_hours", {"lr-1e-5": ([0], [0.1]), "no_kl": ([0], [0.2])}),
        ("a,compute,step,b\n.1,7,3,nan\n.2,9,4,.5\n", "compute", {"a": ([7, 9], [0.1, 0.2]), "b": ([9], [0.5])}),
        ("Relative Time (Process),a - acc\n60,.1\n", "Relative Time (Process)", {"a": ([60], [0.1])}),
        ("_step,samples,1.7b,14b\n1,64,.1,-\n", "steps", {"1.7b": ([1], [0.1])}),
        (
            "total_tokens,one-step,clip-high\n9,.1,.2\n",
            "total_tokens",
            {"one-step": ([9], [0.1]), "clip-high": ([9], [0.2])},
        ),
        ("train/env_steps,a\n1e3,1\n", "steps", {"a": ([1000], [1])}),
        ("seed,step,a\n0,1,.1\n1,1,.2\n", "steps", {"a-s0": ([1], [0.1]), "a-s1": ([1], [0.2])}),
    ],
)
def test_compute_may_be_steps_hours_or_the_time_of_a_process(tmp_path, text, unit, curves):
    (path := tmp_path / "a.csv").write_text(text)
    assert {one.name: (one.compute.tolist(), one.score.tolist()) for one in read_curves(path)} == curves
    assert table_of_curves(path).compute_name == unit


def test_columns_that_hold_for_all_runs_are_kept_and_an_empty_run_is_named(tmp_path):
    (path := tmp_path / "a.csv").write_text("compute,step,samples,a,b\n1,10,64,.1,\n2,20,128,.2,\n")
    (curve,) = read_curves(path)
    assert curve.step is not None
    assert curve.samples is not None
    assert (curve.step.tolist(), curve.samples.tolist()) == ([10, 20], [64, 128])
    assert table_of_curves(path).notes == ("The column 'b' has no reading and is left out.",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step,loss,val/acc\n1,2,.1\n", "a.csv: 'loss', 'val/acc' may be metrics of one run, or runs; call the column"),
        ("step,aime24,math_500\n1,.2,.1\n", "'aime24', 'math_500' may be metrics of one run, or runs; call the column"),
        ("step,pass@1,dapo\n1,.2,.1\n", "'pass@1' may be metrics"),
        ("step,accuracy\n1,.2\n", "such as 'dapo-s1 - val/acc'; `import` reads other names with --score, --compute"),
        (
            "tokens,hours,a\n1,2,.1\n",
            "a.csv: 'tokens', 'hours' may each be the compute; keep one, or call it 'compute'",
        ),
        (
            "epoch,a - acc,a - loss\n1,.2,3\n",
            "a.csv: 2 metrics of runs: 'acc', 'loss'; keep one metric; `import` reads",
        ),
        ("Step,a - acc,b\n1,.2,.3\n", "a.csv: 'b' beside 'a - acc', which names a run and a metric; call every column"),
        ("Step,a - _step,a - _step__MIN\n1,1,1\n", "a.csv: 0 metrics of runs: ; keep one metric"),
        (",step,a\n0,1,.2\n", "a.csv: a column without a name; name it, or leave it out (in pandas with index=False)"),
        ("Unnamed: 0,step,a\n0,1,.2\n", "a.csv: a column without a name"),
        (
            "step,a,a_std,b,b (sem)\n1,.2,.01,.3,.01\n",
            "a.csv: 'a_std', 'b (sem)' may be spreads of other columns; keep",
        ),
        ("step,dapo,dapo__MIN\n1,.2,.1\n", "a.csv: 'dapo__MIN' may be spreads of other columns"),
        (
            "model,step,solved\nqwen2.5,1,.2\n",
            "a.csv: 'model' without a number; leave out columns that are not runs; `im",
        ),
        ("a,b\n.1,.2\n", "missing columns ['curve', 'compute', 'score'], found ['a', 'b']; required columns are"),
        ("step,a,b\n1,.1,.2\n2,.3,23\n", "a.csv:3: b: found 23; a pass rate must lie in [0, 1]; divide percent by 100"),
        ("step,a\n1,.1\n,.3\n", "a.csv:3: step: found ''; must be a number"),
        ("step,a\n1,.1\n1,.3\n", "a.csv:3: compute: 1 appears twice in curve 'a'"),
        ("step,a\n1,\n", "a.csv: no rows below the header"),
    ],
)
def test_a_table_that_may_mean_two_things_is_refused_with_what_would_be_right(tmp_path, text, said):
    (path := tmp_path / "a.csv").write_text(text)
    with pytest.raises(FileError) as caught:
        read_curves(path)
    assert said in str(caught.value)
