"""A study published as one CSV file: readers of the file get the study's own answers, and its card hides nothing."""

import csv
import gzip
import io
import json
from dataclasses import replace

import datasets
import numpy as np
import pytest
import yaml
from fixtures_home import BUDGET, make_home, make_ladder, planned_run, write_state
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.stops import Stopped, write_stops
from ablations.report.data_set import write_data_set
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.run.run_log import read_rows

OF_THE_PLAN = {"overrides", "hours", "cost", "num_runs", "reason"}
"""What a file of curves does not have."""


def run(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def with_plan(sweep: StartedSweep, **changes) -> StartedSweep:
    changed = replace(sweep, plan=replace(sweep.plan, **changes))
    changed.write_plan()
    return changed


def plain(folder):
    return make_home(folder, seeds=(0, 1, 2))


def counted_by_prompt(folder):
    """Held-out problems of which half are never solved, so that the answers say more than their number."""
    sweep = make_home(folder, seeds=(0, 1))
    rng = np.random.default_rng(3)
    for one in sweep.plan.runs:
        rows = list(read_rows(sweep.run(one.id).metrics))
        for row in rows:
            if row["kind"] == "eval":
                right = np.concatenate([rng.binomial(16, min(1, 2 * row["pass_rate"]), 500), np.zeros(500, dtype=int)])
                row["prompt_counts"] = PromptCounts(right=right, judged=np.full(1000, 16)).to_text()
                row["pass_rate"] = int(right.sum()) / 16000
        sweep.run(one.id).metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return sweep


def fitted_otherwise(folder):
    """A window and a loss of its own, and the reference in the second place."""
    first, *others = plain(folder).plan.variants
    fit = {"r0": "free", "loss": "huber", "ceiling": 0.7}
    sweep = StartedSweep(home=Home(folder), plan=read_sweep(Home(folder), "loo").plan)
    return with_plan(
        sweep, fit_from_gpu_hours=100.0, fit_to_gpu_hours=1475.0, fit=fit, variants=(others[0], first, *others[1:])
    )


def ended_early(folder):
    """A run that failed at 30 %, one that waited in vain, and one that a rule stopped at 40 %."""
    sweep = plain(folder)
    *_, stopped = (one for one in sweep.plan.variants if one.name == "loo-loss")
    failed = next(one for one in sweep.plan.variants if one.name == "loo-curriculum")
    for variant, at, fraction, state in ((failed, 0, 0.3, "failed"), (stopped, 1, 0.4, "cancelled")):
        one = variant.runs[at]
        rows = [row for row in read_rows(sweep.run(one.id).metrics) if row["compute_gpu_hours"] <= fraction * BUDGET]
        sweep.run(one.id).metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
        write_state(sweep.home, one.id, state, compute=fraction * BUDGET)
    rule = {"gain_below": 0.01, "probability": 0.9}
    variants = [
        replace(one, runs=(*one.runs, planned_run(one.name, 9))) if one.name == "loo-loss" else one
        for one in sweep.plan.variants
    ]
    sweep = with_plan(sweep, stop=rule, variants=tuple(variants))
    stop = Stopped(
        run=stopped.runs[1].id, variant="loo-loss", seed=1, rule="gain", ends_run=True, value=0.93, num_readings=16,
        compute_gpu_hours=0.4 * BUDGET, A_lo=0.5, A_hi=0.6, budget_gpu_hours=BUDGET, stop=rule,
    )  # fmt: skip
    write_stops(sweep, [stop])
    return sweep


def paired(folder):
    """Real recipes, whose runs of one seed began alike."""
    return read_sweep(make_ladder(folder), "steps@smoke")


STUDIES = [plain, counted_by_prompt, fitted_otherwise, ended_early, paired]


def lines_of(document):
    """The line of each variant by its name, and what the seeds have in common."""
    lines = {
        line["curve"]: {key: value for key, value in line.items() if key not in OF_THE_PLAN}
        for line in document["variants"]
    }
    return lines, document["run_to_run"], document["level_compute"], document["reference"]


@pytest.mark.parametrize("study", STUDIES)
def test_a_file_of_curves_packed_or_not_gives_the_answers_of_its_study_to_the_last_digit(study, tmp_path):
    (tmp_path / "here").mkdir()
    sweep = study(tmp_path / "here")
    results = read_results(sweep, alone=True)
    file, packed = tmp_path / "out" / "curves.csv", tmp_path / "packed" / "curves.csv.gz"
    for to in (file, packed):
        run("export", sweep.name, "--home", sweep.home.path, "--curves", "--to", to)
    assert gzip.decompress(packed.read_bytes()) == file.read_bytes()
    # JSON as scripts get it: a float's repr is all of it.
    own = lines_of(json.loads(json.dumps(results.to_json())))
    assert all(line["level"] is not None for line in own[0].values())
    assert lines_of(json.loads(run("compare", file, "--json"))) == own
    run("import", packed, "--as", "again", "--home", tmp_path / "there")
    assert lines_of(json.loads(run("compare", "again", "--home", tmp_path / "there", "--json"))) == own


@pytest.mark.parametrize(
    ("study", "column"),
    [(counted_by_prompt, "answer_variance"), (fitted_otherwise, "fit_settings"), (ended_early, "run_state")],
)
def test_without_one_of_its_columns_a_file_gives_other_answers(study, column, tmp_path):
    (tmp_path / "here").mkdir()
    results = read_results(study(tmp_path / "here"), alone=True)
    file, _ = write_data_set(results, tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, [key for key in rows[0] if key != column], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    assert lines_of(json.loads(run("compare", file, "--json"))) != lines_of(json.loads(json.dumps(results.to_json())))


def test_a_row_is_an_evaluation_with_its_counters(tmp_path):
    sweep = plain(tmp_path / "here")
    file, _ = write_data_set(read_results(sweep, alone=True), tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    every = [
        (variant.name, str(one.seed), one.id, row)
        for variant in sweep.plan.variants
        for one in variant.runs
        for row in read_rows(sweep.run(one.id).metrics, "eval")
    ]
    assert len(rows) == len(every) == 9 * 41
    for row, (name, seed, run_id, logged) in zip(rows, every, strict=True):
        assert (row["curve"], row["seed"], row["run"], row["run_state"]) == (name, seed, run_id, "done")
        assert (row["compute_unit"], row["scale"]) == ("modelled GPU-hours", "laptop")
        numbers = {"compute": "compute_gpu_hours", "score": "pass_rate", "step": "step", "wall_s": "wall_s"}
        numbers |= {"samples": "num_samples", "prompts": "num_prompts"}
        assert all(float(row[ours]) == logged[theirs] for ours, theirs in numbers.items())


def head_of(card: str):
    _, head, _ = card.split("---\n", 2)
    return yaml.safe_load(head)


def test_the_head_of_a_card_is_that_of_a_data_set_on_hugging_face(tmp_path):
    sweep = plain(tmp_path / "here")
    said = run("export", "loo", "--home", sweep.home.path, "--curves", "--to", tmp_path / "a", "--license", "cc-by-4.0")
    assert "licence" not in said
    card = (tmp_path / "a" / "README.md").read_text()
    assert head_of(card) == {
        "license": "cc-by-4.0",
        "pretty_name": "loo: held-out curves of 9 RL runs",
        "tags": ["reinforcement-learning", "language-models", "scaling-laws", "learning-curves", "ablation-study"],
        "size_categories": ["n<1K"],
        "configs": [{"config_name": "default", "data_files": "curves.csv"}],
    }
    assert "cc-by-4.0." in card


def test_hugging_faces_own_reader_opens_the_folder_by_its_card(tmp_path):
    results = read_results(plain(tmp_path / "here"), alone=True)
    file, _ = write_data_set(results, tmp_path / "out")
    (tmp_path / "out" / "other.csv").write_text("a\n1\n")  # the card does not name it
    found = datasets.load_dataset(str(tmp_path / "out"), split="train", cache_dir=str(tmp_path / "cache"))
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert found.column_names == [*rows[0]]
    assert found["score"][:] == [float(row["score"]) for row in rows]


def test_no_licence_is_invented(tmp_path):
    sweep = plain(tmp_path / "here")
    said = run("export", "loo", "--home", sweep.home.path, "--curves", "--to", tmp_path / "loo.csv.gz")
    card = (tmp_path / "loo.md").read_text()
    assert "it says that no licence was given (--license)" in said
    assert "license" not in head_of(card)
    assert "No licence was given when this file was written." in card
    assert head_of(card)["configs"] == [{"config_name": "default", "data_files": "loo.csv.gz"}]
    assert gzip.decompress((tmp_path / "loo.csv.gz").read_bytes()).startswith(b"curve,seed,compute,score,")


def test_a_card_has_recipe_changes_machine_and_method(tmp_path):
    sweep = paired(tmp_path)
    _, card = write_data_set(read_results(sweep, alone=True), tmp_path / "out")
    text = card.read_text()
    stored = json.loads((sweep.run(sweep.plan.variants[0].runs[0].id).path / "recipe.json").read_text())["recipe"]
    assert yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0]) == stored
    assert "| loss.type=dapo | loss.type = dapo instead of cispo | 0, 1 |" in text
    assert "4 runs on AMD EPYC with 1 thread." in text
    assert "arXiv 2510.13786" in text
    assert "Compute is modelled, not measured" in text


def test_a_card_names_runs_without_evaluations_and_those_that_ended_early(tmp_path):
    sweep = ended_early(tmp_path / "here")
    said = run("export", "loo", "--home", sweep.home.path, "--curves", "--to", tmp_path / "out")
    assert "Without an evaluation: loo-loss-s9." in said
    text = (tmp_path / "out" / "README.md").read_text()
    assert "loo-loss-s9 has no evaluation: not started." in text
    assert "loo-curriculum-s0 ended as failed" in text
    # 41 evaluations each; the failed run was measured at 0, 50, ... 600.
    assert "| loo-curriculum | curriculum.type = uniform | 0, 1, 2 | 95 | between 600 and 2,000 |" in text
    assert "loo-loss-s1 ended as stopped" in text
    assert "None: every run has evaluations" not in text


def test_a_card_of_imported_curves_invents_neither_recipe_nor_machine(tmp_path):
    sweep = plain(tmp_path / "here")
    file, _ = write_data_set(read_results(sweep, alone=True), tmp_path / "out")
    run("import", file, "--as", "again", "--home", tmp_path / "there")
    run("export", "again", "--home", tmp_path / "there", "--curves", "--to", tmp_path / "second")
    text = (tmp_path / "second" / "README.md").read_text()
    assert "The runs were imported (9 runs from curves); their machines are not recorded." in text
    assert "Not recorded: no run of scalerl has a recipe that can be read." in text
    assert "| loo-loss | not recorded |" in text
    again = read_results(read_sweep(Home(tmp_path / "there"), "again"), alone=True)
    assert again.plan.compute_name == "modelled GPU-hours"


def test_passwords_of_a_recipe_are_not_published(tmp_path):
    sweep = plain(tmp_path / "here")
    path = sweep.run(sweep.plan.runs[0].id).path / "recipe.json"
    content = json.loads(path.read_text())
    content["recipe"]["own_server"] = "https://ada:hunter2@example.org/judge"
    path.write_text(json.dumps(content))
    _, card = write_data_set(read_results(sweep, alone=True), tmp_path / "out")
    assert "example.org/judge" in card.read_text()
    assert "hunter2" not in card.read_text()


@pytest.mark.parametrize("name", ["curves.csv", "README.md"])
def test_nothing_is_overwritten(name, tmp_path):
    results = read_results(plain(tmp_path / "here"), alone=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    with pytest.raises(AblationsError, match=rf"{name} already exists; delete it or choose another place with --to"):
        write_data_set(results, tmp_path / "out")
    assert [(one.name, one.read_text()) for one in (tmp_path / "out").iterdir()] == [(name, "mine")]


def test_a_study_without_an_evaluation_and_one_that_trains_are_refused(tmp_path):
    sweep = make_home(tmp_path / "here", fraction=-1)
    with pytest.raises(AblationsError, match="sweep 'loo' has no evaluation to export"):
        write_data_set(read_results(sweep, alone=True), tmp_path / "out")
    write_state(sweep.home, sweep.plan.runs[0].id, "running", compute=10.0)
    with pytest.raises(AblationsError, match="is still training or queued"):
        run("export", "loo", "--home", sweep.home.path, "--curves", "--to", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--license", "mit"], "--license mit has no effect with an export without --curves"),
        (["--curves", "--checkpoints"], "--checkpoints has no effect with --curves"),
    ],
)
def test_options_without_effect_are_refused(options, said, tmp_path):
    sweep = make_home(tmp_path / "here")
    with pytest.raises(AblationsError, match=said):
        run("export", "loo", "--home", sweep.home.path, *options)
