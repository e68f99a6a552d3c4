"""The page Compare as Streamlit runs it, on sweeps generated from known curves."""

import json
import re
from dataclasses import replace
from typing import Any, cast

import pandas as pd
import pytest
import streamlit
from dashboard.app_pages import figures_of, open_page
from dashboard.test_search_page import make_record, make_search
from filelock import FileLock
from fixtures_home import (
    BUDGET,
    HEARTBEAT,
    TRUTH,
    changed,
    collapse,
    make_home,
    planned_run,
    warn,
    write_run,
    write_state,
)
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.advice import with_next_steps
from ablations.findings.results import read_results
from ablations.findings.several_sweeps import together
from ablations.home.plan import PlannedRun
from ablations.status.progress import run_rows
from ablations.study.sweep import Stop
from ablations_dashboard.reading import cache
from ablations_dashboard.reading.cache import load_results, may_change
from ablations_dashboard.reading.run_log import load_metrics
from ablations_dashboard.views.compare import FOLDED, ResultsOfPage
from scalerl.run.idle_steps import ALL_REWARDS_EQUAL


def beat(sweep, heartbeat: float) -> None:
    """All runs give a sign of life."""
    home, plan = sweep.home, sweep.plan
    for variant in plan.variants:
        for run in variant.runs:
            folder = home.run(run.id)
            folder.write_status(replace(folder.read_status(), heartbeat=heartbeat))


def drawn(page: AppTest, place: int) -> set[str]:
    """Names of the traces of the chart at `place`."""
    figure = figures_of(page)[place]
    return {trace["name"] for trace in figure["data"] if trace.get("name")}


def table_with(page: AppTest, column: str) -> pd.DataFrame:
    """The table that has this column."""
    (table,) = [one.value for one in page.dataframe if column in one.value.columns]
    return table


def plain(text: str) -> str:
    """Prose without the backslashes that keep it from being markup."""
    return re.sub(r"\\(\W)", r"\1", text)


def text_of(page: AppTest) -> str:
    """All prose of the page."""
    kinds = (page.markdown, page.caption, page.info, page.text)
    return plain("\n".join(element.value for kind in kinds for element in kind))


def test_a_finished_sweep_shows_verdicts_with_intervals_and_seeds(monkeypatch, decided):
    page = open_page(monkeypatch, decided.home.path, "compare", open=["words"])
    line = load_results(decided).compared("loo-loss")
    assert page.title[0].value == "loo"
    said = "loo-loss: lower at equal compute; ceiling down; more compute to the common target."
    found = line.answers["level"]
    level = f"level {line.level:.3f}, {found.estimate:+.3f} [{found.lo:+.3f}, {found.hi:+.3f}]"
    assert f"{said} {line.asymptote} (3 seeds); {level} against scalerl;" in text_of(page)
    assert "Changes: loss.type = dapo." in text_of(page)
    assert "in A against scalerl (3 seeds)" in text_of(page)
    assert drawn(page, 0) == set(TRUTH)


def test_a_collapse_is_one_red_box_and_equal_warnings_are_one_grey_line(monkeypatch, tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    collapse(sweep, planned_run("loo-loss", 1).id, after=1500.0)
    for number, run in enumerate(sweep.plan.runs):
        warn(sweep, run.id, f"{5 + number} of the last 20 steps trained on nothing: {ALL_REWARDS_EQUAL}")
    page = open_page(monkeypatch, tmp_path, "compare")
    (box,) = page.error
    assert plain(box.value).startswith("loo-loss: 1 of 3 seeds collapsed (seed 1: ")
    expected = (
        "8 of 9 runs: 5 to 13 of the last 20 steps had no gradient (every group all right or all wrong); expected"
    )
    assert sum(plain(one.value).startswith(expected) for one in page.caption) == 1


def test_the_verdict_stands_first_then_curves_differences_table_and_what_is_folded_is_not_read(monkeypatch, decided):
    asked = []
    monkeypatch.setattr("ablations_dashboard.sections.figures.load_metrics", asked.append)
    page = open_page(monkeypatch, decided.home.path, "compare")
    assert asked == []
    kinds = {"title": "title", "subheader": "subheader", "bidi_component": "figure", "dataframe": "table"}
    order = [
        "headline" if one.type == "markdown" and one.value.startswith("##### ") else kinds.get(one.type, "")
        for one in page.main
        if one.type != "expander"
    ]
    seen = [one for one in order if one]
    assert seen == ["title", "headline", "figure", "subheader", "figure", "subheader", "table"]
    assert [one.label for one in page.main.expander] == [
        *("In words", "All numbers", "Ceiling and compute", "Fit diagnostics", "Linearised view"),
        "Training metrics",
    ]
    assert not page.get("progress")


def test_the_table_has_the_highest_level_on_top_and_marks_what_it_shows(monkeypatch, decided):
    page = open_page(monkeypatch, decided.home.path, "compare")
    table = table_with(page, "changes")
    assert list(table["variant"]) == ["scalerl", "loo-curriculum", "loo-loss"]
    compared = load_results(decided).comparison.variants
    found = {line.name: line.answers["ceiling"].estimate for line in compared}
    assert list(table["A − scalerl"]) == [found[name] for name in table["variant"]]
    assert "Marks: * holds jointly for all 2 comparisons; = no difference, at most ±0.0" in text_of(page)


def test_the_selection_is_read_from_the_url_as_far_as_it_is_known(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    changed(sweep, sweep="other").write_plan()
    chosen = {"variant": ["loo-loss", "gone"], "log": "1", "metric": "loss", "open": ["metrics"], "baseline": "gone"}
    page = open_page(monkeypatch, tmp_path, "compare", sweep="loo", **chosen)
    assert page.query_params["open"] == "metrics"
    assert page.title[0].value == "loo"
    assert drawn(page, 0) == {"loo-loss"}
    assert page.toggle(key="log switch").value is True
    assert page.main.selectbox(key="metric ").value == "loss"


def test_an_unknown_sweep_in_the_url_shows_no_other(monkeypatch, finished):
    page = open_page(monkeypatch, finished.home.path, "compare", sweep="lo")
    assert "No sweep `lo`" in plain(page.error[0].value)
    assert "sweeps are: loo" in plain(page.error[0].value)
    assert len(figures_of(page)) == 0
    assert len(page.sidebar.selectbox) == 0


def test_a_grid_has_its_cells_and_main_effects(monkeypatch, grid):
    results = load_results(grid)
    page = open_page(monkeypatch, grid.home.path, "compare", sweep="loss_by_batch")
    assert "The grid" in [plain(one.value) for one in page.subheader]
    cells = [one.value for one in page.dataframe if "cispo°" in one.value.columns]
    assert [list(one.columns) for one in cells] == [["batch.prompts", "cispo°", "dapo"]] * 3
    effects = table_with(page, "value")
    assert list(effects["value"]) == ["dapo", "32", "64"]
    answer = results.grid.effects[0].answers["level"]
    assert effects["level"].iloc[0] == answer.estimate


def test_another_baseline_is_another_comparison(monkeypatch, decided):
    page = open_page(monkeypatch, decided.home.path, "compare", baseline="loo-loss", open=["numbers"])
    assert "Compared with loo-loss" in [plain(one.value) for one in page.subheader]
    table = table_with(page, "published A, B, C_mid")
    assert list(table["level"]) == ["level up", "level up", "reference"]
    turned = read_results(changed(decided, reference="loo-loss")).compared("scalerl")
    assert table["level − loo-loss"].iloc[0] == turned.answers["level"].estimate
    assert list(table["published A, B, C_mid"]) == ["", "", "0.59, 1.77, 2600"]


def test_sweeps_together_show_a_run_once_with_the_numbers_of_the_terminal(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    again = replace(sweep.plan.variants[1], name="again", runs=(PlannedRun(seed=0, id="ab" * 6),))
    write_run(sweep.home, "ab" * 6, (0.60, 1.8, 330.0))
    more = changed(sweep, sweep="more", variants=(sweep.plan.variants[0], again))
    more.write_plan()
    changed(sweep, sweep="elsewhere", scale="8b").write_plan()
    page = open_page(monkeypatch, tmp_path, "compare", sweep="loo", **{"with": ["more"]})
    assert page.sidebar.multiselect(key="with loo").options == ["more"]
    assert drawn(page, 0) == {*TRUTH, "again (more)"}
    printed = CliRunner().invoke(app, ["compare", "loo", "more", "--json", "--home", str(tmp_path)]).stdout
    assert json.loads(printed) == json.loads(json.dumps(with_next_steps(load_results(together(sweep, [more])))))


def test_curves_are_drawn_against_steps(monkeypatch, finished):
    home = finished.home.path
    page = open_page(monkeypatch, home, "compare", against="step")
    figure = figures_of(page)[0]
    seeds = next(trace for trace in figure["data"] if trace["line"]["width"] == 0.8)
    assert max(number for number in seeds["x"] if number is not None) == BUDGET / 25  # a step every 25 GPU-hours
    assert "optimiser steps" in figure["layout"]["xaxis"]["title"]["text"]
    assert "No FLOPs are logged for scalerl" in text_of(open_page(monkeypatch, home, "compare", against="flops"))


HOSTILE = "<img src=x onerror=alert(1)>![x](https://elsewhere.example/x.png)**b**`c` \x1b[31m😀 \"'&" + "w" * 150


def test_what_people_wrote_is_text(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    variants = tuple(replace(one, name=HOSTILE) if one.name == "loo-loss" else one for one in sweep.plan.variants)
    changed(sweep, doc=HOSTILE, variants=variants, published={}).write_plan()
    page = open_page(monkeypatch, tmp_path, "compare", open=[*FOLDED, "metrics"])
    assert plain(page.caption[0].value).startswith(HOSTILE.replace("\x1b", "\\x1b"))
    for one in (*page.markdown, *page.caption, *page.title, *page.subheader):
        assert not re.search(r"(?<!\\)<img|(?<!\\)!\[|\x1b|(?<!\\)\*\*b", one.value), one.value
    for chart in figures_of(page):
        drawn_of_it = [{**trace, "legendgroup": "", "uid": ""} for trace in chart["data"]]  # these are not drawn
        assert "<img" not in json.dumps([drawn_of_it, chart["layout"]])


def test_progress_names_states_and_messages(monkeypatch, tmp_path):
    home = make_home(tmp_path, fraction=0.5, state="running").home
    write_state(home, planned_run("loo-loss", 0).id, "failed", compute=BUDGET / 2, message="Diverged")
    page = open_page(monkeypatch, tmp_path, "runs")
    runs = table_with(page, "attempt")
    assert list(runs["state"]) == ["failed", "running", "running"]
    assert list(runs["compute"]) == [0.5, 0.5, 0.5]
    assert runs["message"].tolist()[0] == "Diverged"


def test_a_sweep_without_a_reading_says_so(monkeypatch, tmp_path):
    home = make_home(tmp_path).home
    for name in TRUTH:
        home.run(planned_run(name, 0).id).metrics.unlink()
    page = open_page(monkeypatch, tmp_path, "compare", open=["metrics"])
    assert "Too early to compare: scalerl has 0 of the 6 evaluations after step 0 that a fit needs." in text_of(page)
    assert "No evaluation yet: scalerl, loo-loss, loo-curriculum." in text_of(page)
    assert "`platform status loo --watch" in text_of(page)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("stopped.json", {"stop": Stop().model_dump()}),
        ("search.json", {"search": True}),
    ],
)
def test_a_decision_that_cannot_be_read_is_an_error_on_the_page(monkeypatch, tmp_path, name, changes):
    sweep = make_home(tmp_path, state="running")
    changed(sweep, **changes).write_plan()
    (sweep.folder / name).write_text("{")
    (error,) = open_page(monkeypatch, tmp_path, "compare").error
    assert f"{name}: not " in plain(error.value)
    assert "elete the file" in error.value


def fragment(path: str) -> None:
    """The part of the page that runs again, with the plan of when the page was opened."""
    from pathlib import Path

    from fixtures_home import make_plan

    from ablations.home.home import Home
    from ablations.home.started_sweep import StartedSweep
    from ablations_dashboard.selection.variants import Shown
    from ablations_dashboard.views.compare import folded_runs

    sweep = StartedSweep(home=Home(Path(path)), plan=make_plan())
    folded_runs(sweep, sweep, Shown(focus=("scalerl",), others=()))


def test_the_part_that_runs_again_counts_trials_done_since_and_says_what_breaks_in_between(tmp_path):
    sweep = make_search(tmp_path, make_record())
    page = AppTest.from_function(fragment, args=(str(tmp_path),), default_timeout=250).run()
    assert "8 of 8 trials are done: trial-004 is the best of 8 by these same evaluations" in text_of(page)
    assert "flatters the difference from scalerl" in text_of(page)
    (sweep.folder / "search.json").write_text("{")
    page.run()
    assert not page.exception
    assert "not the record of a search" in plain(page.error[0].value)


def test_the_sections_of_a_page_share_one_reading_and_one_that_runs_again_reads_anew():
    asked: list[str] = []

    def anew() -> Any:
        asked.append("")
        return f"reading {len(asked)}"

    read, held = ResultsOfPage(anew), cast(Any, "of the page")
    with read.holding(held):
        assert [read(), read()] == [held, held]
    assert [read(), read()] == ["reading 1", "reading 2"]
    with pytest.raises(AblationsError, match="damaged"), read.holding(held):
        raise AblationsError("damaged")
    assert read() == "reading 3"


def test_a_damaged_run_log_is_named_and_the_others_are_drawn(monkeypatch, tmp_path):
    home = make_home(tmp_path).home
    home.run(planned_run("loo-loss", 0).id).metrics.write_text("{]\n")
    page = open_page(monkeypatch, tmp_path, "compare", open=["metrics"])
    assert any("metrics.jsonl:1: not a metrics row" in plain(warning.value) for warning in page.warning)
    assert drawn(page, -1) == {"scalerl", "loo-curriculum"}


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


def test_a_page_asks_to_be_refreshed_until_its_last_run_has_ended(monkeypatch, tmp_path):
    home = make_home(tmp_path, state="running").home
    asked, fragment = [], streamlit.fragment

    def ended_meanwhile(function, *, run_every=None):
        asked.append(run_every)
        for name in TRUTH:
            write_state(home, planned_run(name, 0).id, "done")
        return fragment(function, run_every=run_every)

    monkeypatch.setattr(streamlit, "fragment", ended_meanwhile)
    page = open_page(monkeypatch, tmp_path, "compare")
    assert asked[0] == 10
    assert asked[-1] is None  # and so does a page that is opened later
    assert not page.get("progress")


def test_metrics_hold_the_mean_of_a_histogram(finished):
    rows = load_metrics(finished.run(planned_run("scalerl", 0).id))
    assert len(rows) == 80
    assert set(rows["staleness_mean"]) == {1.5}  # 100 tokens of age 0, 300 of age 2


def test_only_runs_that_have_changed_are_read_again_and_all_of_them_together(tmp_path, monkeypatch):
    sweep = make_home(tmp_path)
    asked, real = [], cache.fit_sweep
    monkeypatch.setattr(cache, "fit_sweep", lambda some: asked.append([run.id for run in some.plan.runs]) or real(some))
    ids = [run.id for run in sweep.plan.runs]
    first = load_results(sweep)
    assert [run.id for run in first.runs] == ids
    grown = sweep.run(ids[-1])
    lines = grown.metrics.read_text().splitlines(keepends=True)
    grown.metrics.write_text("".join(lines[:-1]))
    failed = sweep.run(ids[0])
    failed.write_status(replace(failed.read_status(), state="failed", message="out of memory"))
    middle = sweep.run(ids[1])
    middle.write_status(replace(middle.read_status(), heartbeat=HEARTBEAT + 1))  # which changes no result
    again = load_results(sweep)
    assert asked == [ids, [ids[0], ids[-1]]]
    assert again.runs[-1].curve.compute.size < first.runs[-1].curve.compute.size
    assert again.runs[1] is first.runs[1]
    kept = [len(variant.runs) for variant in again.variants]
    assert kept == [len(variant.runs) for variant in sweep.plan.variants]


def test_the_compute_spent_is_said_where_a_run_has_failed(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    failed = sweep.plan.runs[1]
    write_state(sweep.home, failed.id, "failed", compute=500.0, message="Diverged")
    page = open_page(monkeypatch, tmp_path, "compare")
    said = " ".join([*(one.value for one in page.caption), *(one.proto.text for one in page.get("progress"))])
    assert "75% of the compute of 3 runs, 4,500 modelled GPU-hours spent" in said.replace("\\", "")


def test_a_note_on_a_sweep_can_be_chosen_although_a_variant_has_its_name(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    changed(sweep, sweep="loo-loss").write_plan()
    page = open_page(monkeypatch, tmp_path, "compare", sweep="loo-loss")
    (about,) = [one for one in page.selectbox if one.label == "About"]
    assert about.options == ["loo-loss (the sweep)", *TRUTH]
    page.text_area[0].input("started again")
    next(one for one in page.button if one.label == "Save").click().run()
    assert not page.exception
    written = json.loads((sweep.home.sweep("loo-loss") / "notes.json").read_text())
    assert [*written] == [""]
