"""The pages Run, Recipes and Search as people use them: each control once, in headless Chromium."""

import csv
import io
import json

import numpy as np
import pytest
from dashboard.browser import served_in_browser
from dashboard.test_run_page import HELD_OUT, HOSTILE, ROLLOUT, write_rollouts
from dashboard.test_search_page import SPACE, VALUES, make_record, make_search
from fixtures_home import changed, planned_run, train_row, write_run, write_state

from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.study.resolve import load_resolved
from ablations.study.search_space import Asymptote, ComputeToReach

NAME = """'"><img src=x onerror=alert(1)>![i](https://elsewhere.example/i.png) **b** 🙂 \x1b[31m"""
RUN = planned_run("scalerl", 0).id
LIVE = "cd" * 6
"""A run that trains."""
RECIPE = load_resolved("scalerl", "smoke", ["batch.prompts=12"])


METRICS = "document.querySelector('[aria-label$=\"over optimiser step\"]')"
RANGE = f"{METRICS}._fullLayout.xaxis.range.map(Math.round)"
ZOOM = f"Plotly.relayout({METRICS}, {{'xaxis.range': [10, 20]}})"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> StartedSweep:
    """A sweep with kept rollouts, two logs and a failed run; `hostile`, whose variant and log carry markup; the
    searches `tune` and, with two objectives, `front`."""
    path = tmp_path_factory.mktemp("home")
    searched = make_search(path, make_record())
    searched.folder.rename(searched.folder.with_name("tune"))
    tune = changed(searched, sweep="tune", search=True)
    tune.write_plan()
    front = changed(tune, sweep="front", search=True)
    front.write_plan()
    pairs = tuple((value, 900.0 - 50.0 * place) for place, value in enumerate(VALUES))
    make_record((Asymptote(), ComputeToReach(score=0.4)), pairs).write(front.folder)
    objectives = "[{type: asymptote}, {type: compute_to_reach, score: 0.4}]"
    text = "name: front\nreference: scalerl\nseeds: [0]\nscale: laptop\n" + SPACE.format(objective=objectives)
    (front.folder / "sweep.yaml").write_text(text)
    run = PlannedRun(seed=0, id=RECIPE.identity(0))
    write_run(Home(path), run.id, (0.6, 1.9, 300.0))
    (tune.run(run.id).path / "recipe.json").unlink()
    tune.run(run.id).create(RECIPE, 0)
    tune.run(run.id).log(1).parent.mkdir()
    tune.run(run.id).log(1).write_text(f"{HOSTILE}\n")
    variants = (PlannedVariant(name=NAME, overrides={}, runs=(run,)),)
    changed(tune, sweep="hostile", search=False, reference=NAME, variants=variants).write_plan()
    live = PlannedRun(seed=0, id=LIVE)
    write_run(tune.home, LIVE, (0.6, 1.9, 300.0), fraction=0.5, state="running")
    variants = (PlannedVariant(name="scalerl", overrides={}, runs=(live,)),)
    changed(tune, sweep="live", search=False, variants=variants).write_plan()
    sweep = changed(tune, sweep="loo", search=False)
    sweep.write_plan()
    write_state(sweep.home, planned_run("loo-loss", 0).id, "failed", message=f"Diverged: {HOSTILE}")
    write_rollouts(sweep, [{**ROLLOUT, "step": 40, "prompt_id": "2:early"}, ROLLOUT, HELD_OUT])
    for attempt in (1, 2):
        log = sweep.run(RUN).log(attempt)
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"printed by attempt {attempt}\n")
    own = sweep.run(run.id).rollouts
    own.write_text(json.dumps(replace_names(HELD_OUT)) + "\n")
    return sweep


def replace_names(row):
    """A rollout whose task, prompt and verdict are hostile too."""
    return {**row, "task": NAME, "prompt_id": NAME, "verdict": NAME, "prompt": [{"text": NAME, "tokens": 7}]}


@pytest.fixture(scope="module")
def browser(sweep):
    yield from served_in_browser(sweep.home.path)


def query(page):
    """The selection, as the URL has it."""
    return page.page.evaluate("Object.fromEntries(new URL(location.href).searchParams)")


def metrics_shown(page):
    """The headings in the figure of all metrics."""
    return page.page.evaluate(
        "[...document.querySelector('[aria-label*=\" over \"]')._fullLayout.annotations].map(one => one.text)"
    )


def test_each_control_of_a_run_does_what_it_says_and_is_in_the_url(browser):
    with browser.window(height=1400) as page:
        page.open("run", sweep="loo", run=RUN)
        page.is_whole(figures=5)
        page.choose("Metrics", "loss")
        page.act(
            page.page.get_by_text("seconds trained", exact=True).first.click,
            page.page.get_by_role("slider", name="Smoothing, steps").focus,
            lambda: page.page.keyboard.press("ArrowRight"),
            page.page.get_by_text("the batch trained on before it").click,
        )
        page.choose("Beside the first: the evaluation of step", "40")
        asked = {"sweep": "loo", "run": RUN, "show": "loss", "against": "wall_s", "mean": "25"}
        asked |= {"of": "trained", "rollouts": "40"}
        assert asked.items() <= query(page).items()
        assert metrics_shown(page) == ["loss"]
        assert "2:early" in page.text()
        page.act(lambda: page.page.reload())
        assert asked.items() <= query(page).items()
        assert metrics_shown(page) == ["loss"]
        assert "2:early" in page.text()
        page.is_whole(figures=5)


def test_the_log_of_another_attempt_is_chosen(browser):
    with browser.window(height=1400) as page:
        page.open("run", sweep="loo", run=RUN)
        page.page.get_by_text("printed by attempt 2").scroll_into_view_if_needed()  # a list closes at a scroll
        page.choose("Log of", "attempt 1")
        page.page.get_by_text("printed by attempt 1").wait_for()
        assert query(page)["log"] == "attempt 1"
        page.act(page.page.reload)
        page.page.get_by_text("printed by attempt 1").wait_for()
        assert "printed by attempt 2" not in page.text()
        page.choose("Run", f"loo-loss-s0 ({planned_run('loo-loss', 0).id})")
        assert query(page)["run"] == planned_run("loo-loss", 0).id
        assert "Diverged: <img src=" in page.text()
        page.is_whole(figures=5)


def test_what_a_run_shows_can_be_downloaded(browser):
    with browser.window(height=1400) as page:
        page.open("run", sweep="loo", run=RUN, show="loss", of="trained")
        steps = page.downloads(page.page.get_by_role("button", name="Table as CSV").first.click)
        assert len(list(csv.DictReader(io.StringIO(steps.decode())))) == 80
        figure = page.downloads(page.page.get_by_role("button", name="Figure as HTML").first.click)
        assert b"Plotly.newPlot" in figure
        rollouts = page.downloads(page.page.get_by_role("button", name="Rollouts as JSON lines").click)
        assert [json.loads(line) for line in rollouts.splitlines()] == [ROLLOUT]
        page.is_whole(figures=5)


def test_news_of_a_run_that_trains_is_drawn_by_itself_without_a_half_written_row(browser, sweep):
    last = f"Math.max(...{METRICS}._fullData[0].x)"
    with browser.window(height=1400) as page:
        page.open("run", sweep="live", run=LIVE, show="loss", mean="1")
        page.is_whole(figures=5)
        assert page.page.evaluate(last) == 40
        page.page.evaluate(ZOOM)
        row = json.dumps(train_row(1025.0, np.random.default_rng(0)))
        with sweep.run(LIVE).metrics.open("a") as log:
            log.write(f"{row}\n{row[:40]}")  # and the beginning of the next one
        page.page.wait_for_function(f"{last} === 41")
        page.settled()
        assert page.page.evaluate(RANGE) == [10, 20]
        assert metrics_shown(page) == ["loss"]
        assert query(page)["mean"] == "1"
        page.is_whole(figures=5)


def test_names_logs_and_rollouts_with_markup_inject_nothing(browser):
    with browser.window(dark=True, width=400) as page:
        page.open("run", sweep="hostile", run=RECIPE.identity(0))
        text = page.text()
        assert NAME.replace("\x1b", "␛") in text  # the title
        assert NAME.replace("\x1b", r"\x1b") in text  # the rollout
        assert "␛[31m" in text  # the log
        assert page.page.locator("img[src*=elsewhere], img[src=x], script:text('alert')").count() == 0
        page.is_whole(figures=5)
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_two_recipes_are_chosen_and_stay_chosen(browser):
    with browser.window() as page:
        page.open("recipes")
        assert "settings differ." in page.text()
        page.choose("Right", "recipe ppo_critic")
        page.choose("Left", "recipe baseline")
        page.choose("Scale of recipe files", "smoke")
        page.act(page.page.get_by_text("All settings").click)
        asked = {"left": "recipe baseline", "right": "recipe ppo_critic", "scale": "smoke", "all": "1"}
        assert asked.items() <= query(page).items()
        page.act(lambda: page.page.reload())
        assert asked.items() <= query(page).items()
        content = page.downloads(page.page.get_by_role("button", name="Table as CSV").click)
        lines = list(csv.DictReader(io.StringIO(content.decode())))
        assert {line["differs"] for line in lines} == {"True", "False"}
        page.is_whole()


def test_recipes_of_a_hostile_variant_inject_nothing(browser):
    with browser.window() as page:
        page.open("recipes", left=f"variant hostile/{NAME}", right="recipe scalerl", scale="smoke")
        assert "1 of " in page.text()
        assert page.page.locator("img[src*=elsewhere], img[src=x]").count() == 0
        page.is_whole()


def test_a_search_is_drawn_and_its_tables_open(browser):
    with browser.window(height=1400) as page:
        page.open("search", sweep="front")
        page.is_whole(figures=3)  # the front, the history, the importances
        page.choose("Sweep", "tune")
        page.is_whole(figures=2)
        content = page.downloads(page.page.get_by_role("button", name="Table as CSV").first.click)
        assert next(csv.DictReader(io.StringIO(content.decode())))["trial"] == "trial-004"
        page.act(page.page.get_by_text("What may be tried").click)
        page.choose("Sweep", "loo")
        assert "is not a search" in page.text()
        page.is_whole()
