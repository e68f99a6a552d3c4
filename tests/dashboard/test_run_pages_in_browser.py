"""Pages in headless Chromium: the controls of a run, its news, and names with markup on a dark phone."""

import csv
import io
import json

import numpy as np
import pytest
from dashboard.browser import served_in_browser
from dashboard.test_paper_page import CLAIMS, make_study
from dashboard.test_run_page import HELD_OUT, HOSTILE, ROLLOUT, write_rollouts
from dashboard.test_search_page import SPACE, VALUES, make_record
from fixtures_home import changed, make_home, planned_run, train_row, write_run

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
    """A sweep with kept rollouts; `hostile`, whose variant and log carry markup; `study`, whose claim does; `live`,
    which trains; and the search `front` with two objectives."""
    path = tmp_path_factory.mktemp("home")
    sweep = make_home(path)
    make_study(sweep, claims=({**CLAIMS[0], "source": HOSTILE},), doc=HOSTILE)
    front = changed(sweep, sweep="front", search=True)
    front.write_plan()
    pairs = tuple((value, 900.0 - 50.0 * place) for place, value in enumerate(VALUES))
    make_record((Asymptote(), ComputeToReach(score=0.4)), pairs).write(front.folder)
    objectives = "[{type: asymptote}, {type: compute_to_reach, score: 0.4}]"
    text = "name: front\nreference: scalerl\nseeds: [0]\nscale: laptop\n" + SPACE.format(objective=objectives)
    (front.folder / "sweep.yaml").write_text(text)
    run = PlannedRun(seed=0, id=RECIPE.identity(0))
    write_run(Home(path), run.id, (0.6, 1.9, 300.0))
    folder = sweep.run(run.id)
    (folder.path / "recipe.json").unlink()
    folder.create(RECIPE, 0)
    folder.log(1).parent.mkdir()
    folder.log(1).write_text(f"{HOSTILE}\n")
    rollout = {**HELD_OUT, "task": NAME, "prompt_id": NAME, "verdict": NAME, "prompt": [{"text": NAME, "tokens": 7}]}
    folder.rollouts.write_text(json.dumps(rollout) + "\n")
    variants = (PlannedVariant(name=NAME, overrides={}, runs=(run,)),)
    changed(sweep, sweep="hostile", reference=NAME, variants=variants).write_plan()
    live = PlannedRun(seed=0, id=LIVE)
    write_run(sweep.home, LIVE, (0.6, 1.9, 300.0), fraction=0.5, state="running")
    variants = (PlannedVariant(name="scalerl", overrides={}, runs=(live,)),)
    changed(sweep, sweep="live", variants=variants).write_plan()
    write_rollouts(sweep, [{**ROLLOUT, "step": 40, "prompt_id": "2:early"}, ROLLOUT, HELD_OUT])
    return sweep


@pytest.fixture(scope="module")
def browser(sweep):
    yield from served_in_browser(sweep.home.path)


def query(page):
    """The selection, as the URL has it."""
    return page.page.evaluate("Object.fromEntries(new URL(location.href).searchParams)")


def metrics_shown(page):
    """The headings in the figure of all metrics."""
    return page.page.evaluate(
        """() => { const [beside, all] = document.querySelectorAll('[aria-label*=" over "]');
            return all._fullLayout.annotations.map(one => one.text); }"""
    )


def test_controls_of_a_run_do_what_they_say_are_in_the_url_and_what_it_shows_is_downloaded(browser):
    with browser.window(height=1400) as page:
        page.open("run", sweep="loo", run=RUN)
        page.is_whole(figures=4)
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
        page.act(page.page.reload)
        assert asked.items() <= query(page).items()
        assert metrics_shown(page) == ["loss"]
        assert "2:early" in page.text()
        steps = page.downloads(page.page.get_by_role("button", name="Table as CSV").first.click)
        assert len(list(csv.DictReader(io.StringIO(steps.decode())))) == 80
        figure = page.downloads(page.page.get_by_role("button", name="Figure as HTML").first.click)
        assert b"Plotly.newPlot" in figure
        rollouts = page.downloads(page.page.get_by_role("button", name="Rollouts as JSON lines").click)
        assert [json.loads(line)["prompt_id"] for line in rollouts.splitlines()] == ["2:early"]
        page.is_whole(figures=4)


def test_news_of_a_run_that_trains_is_drawn_by_itself_without_a_half_written_row(browser, sweep):
    last = f"Math.max(...{METRICS}._fullData[0].x)"
    with browser.window(height=1400) as page:
        page.open("run", sweep="live", run=LIVE, show="loss", mean="1")
        page.is_whole(figures=4)
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
        page.is_whole(figures=4)


@pytest.mark.parametrize(
    ("path", "selected", "figures"),
    [
        ("run", {"sweep": "hostile", "run": RECIPE.identity(0)}, 4),
        ("recipes", {"left": f"variant hostile/{NAME}", "right": "recipe scalerl", "scale": "smoke"}, 0),
        ("forecast", {"sweep": "loo"}, 2),
        ("paper", {}, 1),
        ("search", {"sweep": "front"}, 3),  # the front, the history, the importances
    ],
)
def test_pages_of_names_logs_rollouts_and_claims_with_markup_are_whole(browser, path, selected, figures):
    with browser.window(dark=True, width=400) as page:
        page.open(path, **selected)
        text = page.text()
        if path == "run":
            assert text.count(NAME.replace("\x1b", r"\x1b")) >= 2  # the title and the rollout
            assert HOSTILE.replace("\x1b", r"\x1b") in text  # the log
        if path == "recipes":
            assert "1 of " in text
        assert page.page.locator("img[src*=elsewhere], img[src=x], script:text('alert')").count() == 0
        page.is_whole(figures=figures)
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 400
