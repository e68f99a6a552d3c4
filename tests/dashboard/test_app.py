"""The page as Streamlit runs it, on sweeps generated from known curves."""

import io
import json
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import streamlit
from filelock import FileLock
from fixtures_home import BUDGET, HEARTBEAT, TRUTH, changed, make_home, planned_run, write_state
from streamlit.testing.v1 import AppTest

import ablations_dashboard
from ablations.home.started_sweep import StartedSweep
from ablations.search.record import SearchRecord, SearchTrial
from ablations.status.progress import run_rows
from ablations.study.search_space import Asymptote
from ablations.study.sweep import Stop
from ablations.verdict.results import read_results
from ablations_dashboard.load import comparison_csv, load_metrics, load_results, may_change
from scalerl.cluster.unit_state import UnitState

APP = Path(ablations_dashboard.__file__).with_name("app.py")


def open_page(monkeypatch, home: Path, **query) -> AppTest:
    """The page of a home folder, run once."""
    monkeypatch.setenv("ABLATIONS_HOME", str(home))
    page = AppTest.from_file(APP, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def beat(sweep, heartbeat: float) -> None:
    """All runs give a sign of life."""
    home, plan = sweep.home, sweep.plan
    for variant in plan.variants:
        for run in variant.runs:
            folder = home.run(run.id)
            folder.write_status(replace(folder.read_status(), heartbeat=heartbeat))


def drawn(page: AppTest, place: int) -> set[str]:
    """Names in the legend of the chart at `place`."""
    figure = json.loads(page.get("plotly_chart")[place].proto.spec)
    return {trace["name"] for trace in figure["data"] if trace.get("name")}


def text_of(page: AppTest) -> str:
    """All prose of the page."""
    return "\n".join(element.value for kind in (page.markdown, page.caption, page.info) for element in kind)


def test_without_a_sweep_the_page_says_which_command_makes_one(monkeypatch, tmp_path):
    page = open_page(monkeypatch, tmp_path)
    assert f"`platform sweep sweeps/loo.yaml --home {tmp_path}` makes one" in page.info[0].value
    assert len(page.get("plotly_chart")) == 0


def test_a_finished_sweep_shows_verdicts_with_intervals_and_seeds(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    page = open_page(monkeypatch, tmp_path)
    line = read_results(sweep).compared("loo-loss")
    assert page.title[0].value == "loo"
    said = "loo-loss: lower at equal compute; ceiling down; more compute to the common target."
    level = f"Level {line.level:.3f}, {line.delta_level:+.3f} [{line.delta_level_lo:+.3f}, {line.delta_level_hi:+.3f}]"
    assert f"{said} {level} against scalerl. {line.asymptote} (1 seed)" in text_of(page)
    assert "against scalerl (1 seed)" in text_of(page)
    assert drawn(page, 0) == set(TRUTH)


def test_the_table_shows_every_variant_with_the_reference_first(monkeypatch, tmp_path):
    make_home(tmp_path)
    table = open_page(monkeypatch, tmp_path).dataframe[-1].value
    assert list(table["variant"]) == list(TRUTH)
    assert list(table["level"]) == ["reference", "level down", "no difference seen"]
    assert list(table["ceiling"]) == ["reference", "ceiling down", "no difference seen"]
    assert list(table["efficiency"]) == ["reference", "more compute", "more compute"]
    assert list(table["published A, B, C_mid"]) == ["", "0.59, 1.77, 2600", ""]


def test_the_selection_is_read_from_the_url(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    changed(sweep, sweep="other").write_plan()
    page = open_page(monkeypatch, tmp_path, sweep="loo", variant=["loo-loss"], log="1", metric="loss")
    assert page.title[0].value == "loo"
    assert drawn(page, 0) == {"loo-loss"}
    assert page.toggle[0].value is True
    assert page.main.selectbox[0].value == "loss"


def test_the_selection_is_written_to_the_url(monkeypatch, tmp_path):
    make_home(tmp_path)
    page = open_page(monkeypatch, tmp_path)
    page.get("button_group")[0].set_value(["scalerl", "loo-loss"])
    page.toggle[0].set_value(True).run()
    assert page.query_params["sweep"] == "loo"
    assert page.query_params["variant"] == ["scalerl", "loo-loss"]
    assert page.query_params["log"] == "1"
    assert drawn(page, 0) == {"scalerl", "loo-loss"}


def test_an_unknown_selection_in_the_url_is_ignored(monkeypatch, tmp_path):
    make_home(tmp_path)
    page = open_page(monkeypatch, tmp_path, sweep="gone", variant=["gone"], metric="gone")
    assert page.title[0].value == "loo"
    assert drawn(page, 0) == set(TRUTH)


def test_progress_names_states_and_messages(monkeypatch, tmp_path):
    home = make_home(tmp_path, fraction=0.5, state="running").home
    write_state(home, planned_run("loo-loss", 0).id, "failed", compute=BUDGET / 2, message="Diverged")
    page = open_page(monkeypatch, tmp_path)
    runs = page.dataframe[0].value
    assert list(runs["state"]) == ["running", "failed", "running"]
    assert list(runs["compute"]) == [0.5, 0.5, 0.5]
    assert list(runs["message"])[1] == "Diverged"


def test_the_processes_of_a_run_on_the_wall_clock_are_shown(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    folder = sweep.run(sweep.plan.variants[0].runs[0].id)
    unit = UnitState(unit="generator 1", node="n2", state="gone", doing="", deaths=4)
    assert "Processes" not in [one.label for one in open_page(monkeypatch, tmp_path).expander]
    folder.write_status(replace(folder.read_status(), state="running", heartbeat=time.time(), units=(unit,)))
    page = open_page(monkeypatch, tmp_path)
    assert "Processes" in [one.label for one in page.expander]
    (frame,) = [one.value for one in page.dataframe if "process" in one.value.columns]
    line = {"variant": "scalerl", "process": "generator 1", "node": "n2", "state": "gone", "does": "", "deaths": "4"}
    assert frame.to_dict("records") == [line]


def test_a_sweep_without_a_reading_says_so(monkeypatch, tmp_path):
    home = make_home(tmp_path).home
    for name in TRUTH:
        home.run(planned_run(name, 0).id).metrics.unlink()
    page = open_page(monkeypatch, tmp_path)
    assert "No comparison yet: scalerl has no fit." in text_of(page)
    assert "`platform status loo --watch" in text_of(page)


def test_a_plan_that_cannot_be_read_is_an_error_on_the_page(monkeypatch, tmp_path):
    home = make_home(tmp_path).home
    (home.sweep("loo") / "plan.json").write_text("{")
    assert "not a plan" in open_page(monkeypatch, tmp_path).error[0].value


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("allocation.json", {"total_gpu_hours": 3000.0}),
        ("stopped.json", {"stop": Stop().model_dump()}),
        ("search.json", {"search": True}),
    ],
)
@pytest.mark.parametrize("state", ["done", "running"])
def test_a_decision_that_cannot_be_read_is_an_error_on_the_page(monkeypatch, tmp_path, name, changes, state):
    sweep = make_home(tmp_path, state=state)
    changed(sweep, **changes).write_plan()
    (sweep.folder / name).write_text("{")
    (error,) = open_page(monkeypatch, tmp_path).error
    assert f"{name}: not " in error.value
    assert "delete it" in error.value


def fragment(path: str) -> None:
    """The part of the page that runs again, with the plan of when the page was opened."""
    from pathlib import Path

    from fixtures_home import TRUTH, make_plan

    from ablations.home.home import Home
    from ablations.home.started_sweep import StartedSweep
    from ablations_dashboard.views.sweep import show_sweep

    show_sweep(StartedSweep(home=Home(Path(path)), plan=make_plan()), list(TRUTH), False)


def test_the_part_that_runs_again_shows_trials_planned_since_and_what_breaks_in_between(tmp_path):
    sweep = make_home(tmp_path)
    write_trials(changed(sweep, search=True))
    page = AppTest.from_function(fragment, args=(str(tmp_path),), default_timeout=60).run()
    assert "2 of 3 trials done by tpe" in text_of(page)
    (sweep.folder / "search.json").write_text("{")
    page.run()
    assert not page.exception
    assert "not the record of a search" in page.error[0].value


def test_the_forecast_says_what_cannot_be_read(monkeypatch, tmp_path):
    monkeypatch.setenv("ABLATIONS_HOME", str(tmp_path))
    sweep = make_home(tmp_path)
    changed(sweep, stop=Stop().model_dump()).write_plan()
    (sweep.folder / "stopped.json").write_text("{")

    def forecast() -> None:
        from ablations_dashboard.views.forecast import show

        show()

    page = AppTest.from_function(forecast, default_timeout=60).run()
    assert not page.exception
    assert "not a list of stopped runs" in page.error[0].value


def test_a_damaged_run_log_is_named_and_the_others_are_drawn(monkeypatch, tmp_path):
    home = make_home(tmp_path).home
    home.run(planned_run("loo-loss", 0).id).metrics.write_text("{]\n")
    page = open_page(monkeypatch, tmp_path)
    assert any("metrics.jsonl:1: not a metrics row" in warning.value for warning in page.warning)
    assert drawn(page, -1) == {"scalerl", "loo-curriculum"}


def test_the_csv_holds_the_numbers_of_the_comparison(tmp_path):
    sweep = make_home(tmp_path)
    results = load_results(sweep)
    table = pd.read_csv(io.BytesIO(comparison_csv(results)), index_col="variant")
    assert table.loc["loo-loss", "A"] == pytest.approx(TRUTH["loo-loss"][0], abs=0.01)
    assert table.loc["loo-loss", "delta_A_hi"] == pytest.approx(results.compared("loo-loss").delta_A_hi)
    assert table.loc["loo-loss", "published_A"] == 0.59
    assert table.loc["scalerl", "cost_gpu_hours"] == BUDGET


def test_a_run_is_fitted_again_only_when_its_log_has_grown(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    first = load_results(sweep)
    beat(sweep, HEARTBEAT + 1)
    with home.run(planned_run("scalerl", 0).id).metrics.open("a") as file:
        file.write('{"kind": "train", "step": 201, "compute_gpu_hours": 2010.0}\n')
    again = load_results(sweep)
    assert [new is old for new, old in zip(again.runs, first.runs, strict=True)] == [False, True, True]
    assert again.variant("scalerl").cost_gpu_hours == 2010.0


def test_another_window_is_another_fit(tmp_path):
    sweep = make_home(tmp_path)
    load_results(sweep)
    results = load_results(changed(sweep, fit_to_gpu_hours=1000.0))
    assert results.variant("scalerl").fits[0].window == (50.0, 1000.0)


def test_what_is_kept_is_what_would_be_read(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    home = sweep.home
    home.run(planned_run("loo-loss", 0).id).metrics.unlink()
    load_results(sweep)
    write_state(home, planned_run("loo-loss", 0).id, "failed", message="Diverged")
    assert load_results(sweep).to_json() == read_results(sweep).to_json()


def test_a_page_is_refreshed_until_the_last_run_has_ended(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    run_id = planned_run("loo-curriculum", 0).id

    def refreshed() -> bool:
        return may_change(sweep, run_rows(sweep), now=1000.0)

    assert not refreshed()
    beat(sweep, 1000.0 - 121)
    (home.run(run_id).path / "status.json").unlink()  # not started yet
    assert not refreshed()
    with FileLock(home.sweep("loo") / "lock"):
        assert refreshed()
    assert not refreshed()
    write_state(home, run_id, "running")
    assert refreshed()
    write_state(home, run_id, "cancelled")
    beat(sweep, 1000.0 - 119)  # by a sweep on another machine
    assert refreshed()


@pytest.mark.parametrize(("state", "every"), [("done", None), ("running", 10)])
def test_the_page_asks_to_be_refreshed(monkeypatch, tmp_path, state, every):
    asked, fragment = [], streamlit.fragment

    def noted(function, *, run_every=None):
        asked.append(run_every)
        return fragment(function, run_every=run_every)

    monkeypatch.setattr(streamlit, "fragment", noted)
    make_home(tmp_path, state=state)
    open_page(monkeypatch, tmp_path)
    assert asked == [every]


def test_a_page_whose_last_run_has_ended_asks_no_more(monkeypatch, tmp_path):
    home = make_home(tmp_path, state="running").home
    asked, fragment = [], streamlit.fragment

    def ended_meanwhile(function, *, run_every=None):
        asked.append(run_every)
        for name in TRUTH:
            write_state(home, planned_run(name, 0).id, "done")
        return fragment(function, run_every=run_every)

    monkeypatch.setattr(streamlit, "fragment", ended_meanwhile)
    page = open_page(monkeypatch, tmp_path)
    assert asked == [10, None]
    assert "3 done" in page.get("progress")[0].proto.text


def test_metrics_hold_the_mean_of_a_histogram(tmp_path):
    home = make_home(tmp_path).home
    rows = load_metrics(home, planned_run("scalerl", 0).id)
    assert len(rows) == 80
    assert set(rows["staleness_mean"]) == {1.5}  # 100 tokens of age 0, 300 of age 2


def write_trials(sweep: StartedSweep) -> None:
    """The sweep as a search with two of three trials done."""
    sweep.write_plan()
    plan = sweep.plan
    trials = (
        SearchTrial(name="loo-loss", params={"batch.prompts": 8}, state="done", values=(0.52,)),
        SearchTrial(name="loo-curriculum", params={"batch.prompts": 16}, state="done", values=(0.58,)),
    )
    SearchRecord(
        sampler="tpe",
        seed=0,
        num_trials=3,
        seeds=(0,),
        space={"batch.prompts": "8 to 32, step 8"},
        objectives=(Asymptote(),),
        budget_gpu_hours=plan.budget_gpu_hours,
        fit_from_gpu_hours=0.0,
        fit_to_gpu_hours=plan.fit_to_gpu_hours,
        fit={},
        trials=trials,
    ).write(sweep.folder)


def test_the_trials_of_a_search_are_shown_best_first(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    write_trials(changed(sweep, search=True))
    page = open_page(monkeypatch, tmp_path)
    table = next(frame.value for frame in page.dataframe if "trial" in frame.value.columns)
    assert list(table["trial"]) == ["loo-curriculum", "loo-loss"]
    assert list(table["batch.prompts"]) == ["16", "8"]
    assert list(table[""]) == ["best", ""]
    assert "2 of 3 trials done by tpe" in text_of(page)
    assert "flatters the difference from scalerl" in text_of(page)
