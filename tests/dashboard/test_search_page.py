"""The page of a search: history, importances, Pareto front and trials."""

from dataclasses import replace

import pytest
from dashboard.app_pages import figures_of, messages, open_page
from fixtures_home import changed, make_home

from ablations.report.figures.plotly_chart import on_screen
from ablations.search.optuna_study import importances
from ablations.search.record import SearchRecord, SearchTrial
from ablations.study.search_space import Asymptote, ComputeToReach, Dimension
from ablations_dashboard.drawings.search import history_chart, hover_text, pareto_chart

SPACE = """
search:
  trials: 8
  objective: {objective}
  space:
    batch.prompts: {{low: 8, high: 64, step: 8}}
    optimiser.learning_rate: {{low: 1.0e-4, high: 1.0e-2, log: true}}
"""
PROMPTS = (8, 16, 24, 32, 40, 48, 56, 64)
VALUES = (0.41, 0.43, 0.52, 0.58, 0.61, 0.60, 0.55, 0.47)


CEILING = (Asymptote(),)


def make_record(objectives=CEILING, values=tuple((value,) for value in VALUES), **changes):
    trials = tuple(
        SearchTrial(
            name=f"trial-{place:03d}",
            params={"batch.prompts": prompts, "optimiser.learning_rate": 1e-3},
            state="done",
            values=found,
        )
        for place, (prompts, found) in enumerate(zip(PROMPTS, values, strict=False))
    )
    fields = {
        "sampler": "tpe",
        "seed": 0,
        "num_trials": 8,
        "seeds": (0,),
        "space": {"batch.prompts": "8 to 64, step 8", "optimiser.learning_rate": "0.0001 to 0.01, log"},
        "objectives": objectives,
        "budget_gpu_hours": 2000.0,
        "fit_from_gpu_hours": 0.0,
        "fit_to_gpu_hours": 2000.0,
        "fit": {},
        "trials": trials,
    }
    return SearchRecord(**fields | changes)


def make_search(path, record, objective="{type: asymptote}"):
    sweep = changed(make_home(path), search=True)
    sweep.write_plan()
    (sweep.folder / "sweep.yaml").write_text(
        "name: loo\ndoc: Which batch?\nreference: scalerl\nscale: laptop\n" + SPACE.format(objective=objective)
    )
    record.write(sweep.folder)
    return sweep


def headers(page):
    return [one.value for one in page.header]


def test_a_search_shows_history_importances_and_its_trials_best_first(monkeypatch, tmp_path):
    make_search(tmp_path, make_record())
    page = open_page(monkeypatch, tmp_path, "search")
    assert headers(page) == ["History", "Importances", "Trials"]
    assert len(figures_of(page)) == 2
    assert list(page.dataframe[0].value["trial"])[:2] == ["trial-004", "trial-005"]
    assert list(page.dataframe[1].value["setting"]) == ["batch.prompts", "optimiser.learning_rate"]
    assert messages(page) == ""


def test_several_objectives_have_a_pareto_front_and_one_is_chosen(monkeypatch, tmp_path):
    pairs = tuple(zip(VALUES, (900.0, 800.0, 700.0, 950.0, 990.0, 600.0, None, 500.0), strict=True))
    both = (Asymptote(), ComputeToReach(score=0.4))
    make_search(tmp_path, make_record(both, pairs), "[{type: asymptote}, {type: compute_to_reach, score: 0.4}]")
    page = open_page(monkeypatch, tmp_path, "search", objective="compute to 0.4")
    assert headers(page) == ["Pareto front", "History", "Importances", "Trials"]
    history = figures_of(page)[1]
    assert history["layout"]["yaxis"]["title"]["text"] == "compute to 0.4"
    assert not page.selectbox(key="objective loo").set_value("A, lower end").run().exception
    assert "objective" not in page.query_params


def test_of_few_or_equal_trials_no_importance_is_claimed(monkeypatch, tmp_path):
    make_search(tmp_path, make_record(values=((0.5,), (0.6,), (0.4,))))
    assert "Importances need 4 finished trials" in messages(open_page(monkeypatch, tmp_path, "search"))


def test_a_search_without_a_trial_says_what_shows_the_first(monkeypatch, tmp_path):
    make_search(tmp_path, make_record(values=()))
    page = open_page(monkeypatch, tmp_path, "search")
    assert "`platform status loo --watch --home" in messages(page)
    assert "No trial has been proposed yet" in messages(page)


def test_a_sweep_that_is_no_search_names_those_that_are(monkeypatch, tmp_path):
    sweep = make_search(tmp_path, make_record())
    other = replace(sweep, plan=replace(sweep.plan, sweep="plain", search=False))
    other.write_plan()
    page = open_page(monkeypatch, tmp_path, "search", sweep="plain")
    assert "not a search" in messages(page)
    assert "`loo`" in messages(page)


def test_a_damaged_sweep_file_costs_the_importances_alone(monkeypatch, tmp_path):
    sweep = make_search(tmp_path, make_record())
    (sweep.folder / "sweep.yaml").write_text("name: [")
    page = open_page(monkeypatch, tmp_path, "search")
    assert "sweep\\.yaml" in page.error[0].value
    assert headers(page) == ["History", "Importances", "Trials"]


def test_a_setting_that_decides_has_nearly_all_importance():
    prompts = [*PROMPTS] * 4
    rates = [1e-4 * 10 ** (2 * (place * 7 % 32) / 31) for place in range(32)]  # in an order of its own
    points = [{"batch.prompts": a, "optimiser.learning_rate": b} for a, b in zip(prompts, rates, strict=True)]
    space = {
        "batch.prompts": Dimension(low=8, high=64, step=8),
        "optimiser.learning_rate": Dimension(low=1e-4, high=1e-2, log=True),
    }
    values = [one["batch.prompts"] / 64 for one in points]
    found = importances(space, points, values, is_maximised=True)
    assert list(found) == ["batch.prompts", "optimiser.learning_rate"]
    assert found["batch.prompts"] > 0.8
    assert sum(found.values()) == pytest.approx(1)
    assert importances(space, points[:3], values[:3], is_maximised=True) == {}
    assert importances(space, points, [0.5] * 32, is_maximised=True) == {}


def test_the_best_so_far_never_falls():
    best, trials = history_chart(make_record()).panels[0].marks
    assert list(best.y) == [0.41, 0.43, 0.52, 0.58, 0.61, 0.61, 0.61, 0.61]
    assert list(trials.y) == list(VALUES)
    both = (Asymptote(), ComputeToReach(score=0.4))
    record = make_record(both, ((0.5, 900.0), (0.5, None), (0.5, 950.0), (0.5, 400.0)))
    best, trials = history_chart(record, objective=1).panels[0].marks
    assert list(best.x) == [0, 2, 3]  # the second never reaches the score
    assert list(best.y) == [900.0, 900.0, 400.0]


def test_the_front_holds_what_no_other_trial_beats():
    both = (Asymptote(), ComputeToReach(score=0.4))
    record = make_record(both, ((0.60, 900.0), (0.55, 500.0), (0.54, 600.0), (0.58, None)))
    others, front = pareto_chart(record).panels[0].marks
    assert list(zip(front.x, front.y, strict=True)) == [(0.55, 500.0), (0.60, 900.0)]
    assert list(zip(others.x, others.y, strict=True)) == [(0.54, 600.0)]
    assert front.steps == "vh"  # up to 0.60 the least compute is 900, that of the next trial of the front
    turned = make_record(both[::-1], ((900.0, 0.60), (500.0, 0.55)))
    _, front = pareto_chart(turned).panels[0].marks
    assert front.steps == "hv"  # with less than 900 the highest is 0.55, of the trial before


def test_choices_with_markup_are_no_markup_in_a_figure():
    trial = SearchTrial(name="trial-000", params={"loss": '<a href="x">y</a><br>'}, state="done", values=(0.5,))
    record = make_record(trials=(trial,))
    assert hover_text(record, trial) == 'trial-000, best: A, lower end 0.500\nloss <a href="x">y</a><br>'
    (text,) = on_screen(history_chart(record)).data[1].text
    assert text == 'trial-000, best: A, lower end 0.500<br>loss &lt;a href="x"&gt;y&lt;/a&gt;&lt;br&gt;'
