"""The page Runs as Streamlit runs it."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from dashboard.app_pages import figures_of, messages, open_page
from dashboard.test_run_table import grid_with_recipes
from fixtures_home import BUDGET, changed, collapse, make_home, planned_run, write_state

from ablations.findings.results import read_results
from ablations.home.notes import NoteSubject
from ablations_dashboard.drawings.settings import parallel_coordinates


def rows_of(page):
    return page.dataframe[0].value


@pytest.fixture
def spoiled(tmp_path):
    """A finished sweep of three variants with two seeds, of whose runs one has failed and one has collapsed."""
    sweep = make_home(tmp_path, seeds=(0, 1))
    collapse(sweep, planned_run("loo-curriculum", 1).id, after=1500.0)
    write_state(sweep.home, planned_run("loo-loss", 0).id, "failed", compute=BUDGET / 2, message="Diverged")
    read_results(sweep)
    return sweep


def test_the_runs_in_trouble_come_first_each_with_a_link_to_its_page(monkeypatch, spoiled):
    page = open_page(monkeypatch, spoiled.home.path, "runs")
    table = rows_of(page)
    assert list(table["state"])[:3] == ["failed", "collapsed", "done"]
    first = table.to_dict("records")[0]
    assert (first["compute"], first["message"]) == (0.5, "Diverged")
    assert first["open"] == f"run?sweep=loo&run={planned_run('loo-loss', 0).id}"
    assert json.loads(page.dataframe[0].proto.columns)["message"]["width"] == 240
    assert "6 of 6 runs" in [one.value for one in page.markdown]


def test_the_address_has_the_whole_state_of_the_table(monkeypatch, spoiled):
    chosen = {"where": "seed=1", "state": "done", "sort": "pass rate", "down": "1", "hide": ["id", "message"]}
    page = open_page(monkeypatch, spoiled.home.path, "runs", **chosen)
    table = rows_of(page)
    assert sorted(table["run"]) == ["loo-loss-s1", "scalerl-s1"]
    assert list(table["pass rate"]) == sorted(table["pass rate"], reverse=True)
    assert not {"id", "message"} & {*table.columns}
    page.text_input(key="where").set_value("scalerl").run()
    assert page.query_params["where"] == "scalerl"
    assert sorted(rows_of(page)["run"]) == ["scalerl-s0", "scalerl-s1"]


def test_values_of_a_setting_are_chosen_and_a_group_has_its_mean(monkeypatch, tmp_path):
    sweep = grid_with_recipes(tmp_path)
    read_results(sweep)
    page = open_page(monkeypatch, sweep.home.path, "runs", **{"is.batch.prompts": ["16", "64"], "group": "loss.type"})
    assert "8 of 12 runs" in [one.value for one in page.markdown]
    (table,) = [one.value for one in page.dataframe if "loss.type" in one.value.columns]
    assert list(table["loss.type"]) == ["cispo", "dapo"]
    mean = list(table["mean level [95 %]"])
    assert mean[0] > mean[1] + 0.03, "the laws of the grid have .61 and .55"
    assert any("degrees of freedom" in one.value for one in page.caption)


def test_a_filter_that_cannot_be_read_is_a_message_and_the_rest_of_the_page_stays(monkeypatch, spoiled):
    page = open_page(monkeypatch, spoiled.home.path, "runs", where="los=dapo")
    assert "The table has no column `los`" in messages(page)
    assert page.text_input(key="where").value == "los=dapo"
    page.text_input(key="where").set_value("").run()
    assert len(rows_of(page)) == 6


def test_each_warning_links_to_its_runs(monkeypatch, spoiled):
    page = open_page(monkeypatch, spoiled.home.path, "compare")
    links = [one.proto for one in page.get("page_link")]
    said = {one.label.replace("\\", ""): (one.page, one.query_string) for one in links}
    for name, run in (
        ("loo-loss-s0", planned_run("loo-loss", 0)),
        ("loo-curriculum-s1", planned_run("loo-curriculum", 1)),
    ):
        assert said[name] == ("run", f"sweep=loo&run={run.id}")


def test_an_address_may_name_a_run(monkeypatch, spoiled):
    page = open_page(monkeypatch, spoiled.home.path, "run", sweep="loo", run="loo-loss-s0")
    assert page.title[0].value.replace("\\", "") == "loo-loss-s0"
    assert page.query_params["run"] == planned_run("loo-loss", 0).id


def test_notes_and_tags_stand_beside_their_runs_and_above_the_figures(monkeypatch, spoiled):
    run = planned_run("loo-loss", 1).id
    folder = spoiled.home.run(run).path
    NoteSubject(home=spoiled.home, folder=folder).add(text="repeat with FP32 <b>", tags=("keep",), at=1000.0)
    table = rows_of(open_page(monkeypatch, spoiled.home.path, "runs", where="keep"))
    assert [*zip(table["run"], table["tags"], table["note"], strict=True)] == [
        ("loo-loss-s1", "keep", "repeat with FP32 <b>")
    ]
    for page in ("compare", "run"):
        shown = open_page(monkeypatch, spoiled.home.path, page, sweep="loo", run=run)
        (notes,) = [one.value for one in shown.dataframe if "note" in one.value.columns]
        assert list(notes["about"]) == ["loo-loss-s1"]
        assert list(notes["note"]) == ["repeat with FP32 <b>"]


def test_what_matters_is_shown_of_three_settings_with_intervals_and_a_line_per_run(monkeypatch, tmp_path):
    sweep = grid_with_recipes(tmp_path)
    third = [replace(one, overrides={**one.overrides, "optimiser.learning_rate": 1e-4 * (1 + at % 2)})
             for at, one in enumerate(sweep.plan.variants)]  # fmt: skip
    sweep = changed(sweep, variants=tuple(third))
    sweep.write_plan()
    read_results(sweep)
    assert "Which setting matters" not in [one.label for one in open_page(monkeypatch, tmp_path, "runs").toggle]
    page = open_page(monkeypatch, sweep.home.path, "runs", matters="1")
    (figure,) = figures_of(page)
    assert figure["layout"]["yaxis"]["ticktext"][0] == "loss.type"
    assert "An interval that reaches 0 shows no effect." in " ".join(one.value for one in page.caption)
    (chart,) = [json.loads(one.proto.spec) for one in page.get("plotly_chart")]
    labels = [one["label"] for one in chart["data"][0]["dimensions"]]
    assert sorted(labels[:3]) == ["batch.prompts", "loss.type", "optimiser.learning_rate"]
    assert labels[3] == "level"


def test_every_axis_of_the_lines_has_its_own_round_numbers_so_that_plotly_writes_none_over_its_name():
    rates = [1e-4 * (1 + at) for at in range(16)]
    prompts = [17 + at for at in range(16)]
    table = pd.DataFrame({"batch.prompts": prompts, "optimiser.learning_rate": rates, "level": rates})
    (lines,) = parallel_coordinates(table, ["batch.prompts", "optimiser.learning_rate"], "level").data
    first, second, result = lines.dimensions
    assert first.ticktext == ("18", "21", "24", "27", "30")  # steps of 1 and 2 would give more than seven
    assert second.ticktext == result.ticktext == ("0.0003", "0.0006", "0.0009", "0.0012", "0.0015")
