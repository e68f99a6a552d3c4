"""`pairs:` of a sweep file, and the interactions of a study in every output."""

from collections import Counter
from itertools import chain

import pytest
from fixtures_home import changed, make_home, write_run
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings.results import read_results
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.report.documents.grid import effect_tables, grid_blocks
from ablations.report.writers.csv_files import csv_files
from ablations.report.writers.markdown import markdown_document
from ablations.study.expand import expand

FILE = """\
name: pairs
reference: scalerl
scale: smoke
axes: {loss.type: [dapo, grpo]}
variants:
  small: {batch.prompts: 8}
pairs: PAIRS
"""
MORE = FILE.replace(
    "variants:", "variants:\n  hot: {generation.temperature: 1.2}\n  slow: {optimiser.warmup_steps: 20}"
)


def variants(tmp_path, pairs):
    (tmp_path / "pairs.yaml").write_text(FILE.replace("PAIRS", pairs))
    return {one.name: one.overrides for one in expand(tmp_path / "pairs.yaml").variants}


def test_every_two_changes_of_different_settings_are_trained_together(tmp_path):
    found = variants(tmp_path, "true")
    assert [name for name in found if "+" in name] == ["loss.type=dapo+small", "loss.type=grpo+small"]
    both = found["loss.type=dapo+small"]
    assert both == found["loss.type=dapo"] | found["small"]
    assert "+" not in "".join(variants(tmp_path, "false"))


def test_listed_pairs_alone_are_trained(tmp_path):
    assert [name for name in variants(tmp_path, "[[small, loss.type=grpo]]") if "+" in name] == ["small+loss.type=grpo"]


def test_a_number_of_pairs_is_a_balanced_part_that_the_plan_names(tmp_path):
    (tmp_path / "pairs.yaml").write_text(MORE.replace("PAIRS", "5"))
    study = expand(tmp_path / "pairs.yaml")
    # Nine of ten pairs are possible: the two losses exclude each other. Five pairs of five changes: each in two.
    assert len(study.possible_pairs) == 9
    assert len(study.pairs) == 5
    assert set(Counter(chain.from_iterable(study.pairs)).values()) == {2}
    arguments = ["sweep", str(tmp_path / "pairs.yaml"), "--dry-run", "--home", str(tmp_path / "home")]
    printed = CliRunner().invoke(app, arguments).stdout
    names = ", ".join(f"{first}+{second}" for first, second in study.pairs)
    assert f"5 of 9 pairs of changes, each change in 2 of them: {names}" in printed


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three seeds of `make_home`'s variants, and of both changes: as low a ceiling as one of them alone, no more."""
    sweep = make_home(tmp_path_factory.mktemp("pairs"), seeds=(0, 1, 2))
    runs = tuple(PlannedRun(seed=seed, id=f"00000{seed}00000b") for seed in range(3))
    for run in runs:
        write_run(sweep.home, run.id, (0.60, 1.92, 320.0), seed=run.seed)
    overrides = {"loss": {"type": "dapo"}, "curriculum.type": "uniform"}
    both = PlannedVariant(name="loo-loss+loo-curriculum", overrides=overrides, runs=runs)
    sweep = changed(sweep, variants=(*sweep.plan.variants, both))
    sweep.write_plan()
    return read_results(sweep)


def test_the_interaction_is_in_json_tables_files_and_reports(results):
    (pair,) = results.interactions
    assert (pair.first, pair.second) == ("loo-loss", "loo-curriculum")
    level = pair.answers["level"]
    assert level.verdict == "level up"
    assert pair.word("level") == "need each other"  # taking the loss away costs .07, but nothing without the curriculum
    document = results.to_json()
    assert document["interactions"][0]["level_difference"] == level.estimate
    assert document["interactions"][0]["words"]["level"] == "need each other"
    (table,) = effect_tables(results)
    assert table.rows[0][0].text == "loo-loss with loo-curriculum"
    assert "need each other" in table.rows[0][-1].text
    text = markdown_document(grid_blocks(results))
    assert "## Two changes together" in text
    assert "beyond their sum" in text
    assert csv_files(results)["interactions.csv"].decode().splitlines()[1].startswith("loo-loss,loo-curriculum,")
