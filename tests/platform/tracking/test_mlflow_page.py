"""MLflow's own pages in a real browser, as `platform mlflow` serves them: variants, tags, a figure, and a doc that does
nothing.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from dashboard.browser import CHROMIUM, LIMIT_MS, require_chromium
from fixtures_home import make_home
from ports import free_ports
from reaper import start_reaper
from waiting import wait_until

from ablations.tracking.push_missing import push_sweep
from ablations.tracking.sync_note import default_tracking_uri, read_note

COLUMN_NAMES = ["changes", "level", "level_verdict", "A_lo", "ceiling_verdict", "compute_ratio"]
"""Headings of the first columns; the others are beyond the right edge, and MLflow draws them when they are seen."""
DOC = (
    'Which <b>loss</b> **wins**? ![x](http://elsewhere.invalid/x.png) <img src="http://elsewhere.invalid/y.png" '
    "onerror=\"document.title='owned'\"><script>document.title='owned'</script> \x1b[2J 'single' \U0001f3c6 "
) + "a" * 200


@dataclass(frozen=True, kw_only=True)
class Pages:
    """A tab on a server with one sweep: `pages.open("runs")`."""

    page: Any
    experiment: str
    runs: str
    """URL of the page of its runs, as `platform mlflow` prints it."""
    ids: dict[str, str]
    """Of each variant in MLflow."""
    elsewhere: list[str]
    said: Path
    """What the server has printed."""

    def open(self, path: str) -> None:
        self.page.goto(f"{self.experiment}/{path}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory, empty_store) -> Iterator[Pages]:
    require_chromium()
    from playwright.sync_api import sync_playwright

    home = tmp_path_factory.mktemp("home")
    sweep = make_home(home)
    replace(sweep.plan, doc=DOC).write(sweep.home.plan_file("loo"))
    shutil.copy(empty_store, home / "mlflow.db")
    report = push_sweep(sweep.reread())
    assert (report.rows_left, report.reason) == (0, "")
    with serving(home) as (server, said):
        experiment = read_note(sweep.home, "loo").experiment_id
        elsewhere: list[str] = []
        with (
            sync_playwright() as playwright,
            playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as chromium,
        ):
            page = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce").new_page()
            page.set_default_timeout(LIMIT_MS)
            page.on("request", lambda request: note_elsewhere(request.url, server, elsewhere))
            yield Pages(
                page=page,
                experiment=f"{server}/#/experiments/{experiment}",
                runs=said.read_text().splitlines()[0].split()[-1],
                ids=ids_of_variants(default_tracking_uri(sweep.home), experiment),
                elsewhere=elsewhere,
                said=said,
            )


def ids_of_variants(uri: str, experiment: str) -> dict[str, str]:
    from mlflow import MlflowClient

    runs = MlflowClient(uri).search_runs([experiment], "tags.kind = 'variant'")
    return {run.data.tags["variant"]: run.info.run_id for run in runs}


def note_elsewhere(url: str, own: str, elsewhere: list[str]) -> None:
    if not url.startswith((own, "data:", "blob:")):
        elsewhere.append(url)


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, Path]]:
    """The server of `platform mlflow`, and what it prints."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "ablations.cli", "mlflow", f"--port={port}", f"--home={home}"]
    reaper, said = start_reaper(f"MLFLOW_SERVER_OF={home}"), home / "said"
    with said.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=os.environ | {"MLFLOW_SERVER_OF": str(home)}
        )
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}"), "MLflow", process=process, shown=said.read_text)
        yield f"http://127.0.0.1:{port}", said
    finally:
        reaper.communicate()
        process.wait()


def answers(server: str) -> bool:
    """Not only that it listens: the client waits 10 s for an answer."""
    try:
        with urlopen(f"{server}/health", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


def test_mlflow_prints_no_warning_beside_the_url(pages):
    first, *others = pages.said.read_text().splitlines()
    assert first.endswith("/runs?workflowType=machine_learning&viewStateShareKey=ablations")
    assert [line for line in others if not line.startswith("[MLflow] Security middleware enabled")] == []


def test_the_variants_of_a_sweep_are_listed_and_its_doc_stays_text(pages):
    pages.open("runs")
    for name in pages.ids:
        pages.page.get_by_role("link", name=name, exact=True).wait_for()
    doc = pages.page.get_by_text("Which <b>loss</b> **wins**? ![x](http://elsewhere.invalid/x.png)")
    doc.first.wait_for()
    assert "\\x1b[2J 'single' \U0001f3c6" in doc.first.inner_text()
    assert "owned" not in pages.page.title()
    assert pages.elsewhere == []


def test_a_variant_has_tags_that_say_what_it_is_and_what_was_found(pages):
    pages.open(f"runs/{pages.ids['loo-loss']}")
    pages.page.get_by_text("ceiling_verdict").first.wait_for()
    shown = re.sub(r"\s*:\s*", ": ", pages.page.locator("body").inner_text())
    for tag in ("variant: loo-loss", "axis: loss", "changes: loss.type = dapo", "reference: scalerl"):
        assert tag in shown
    assert "ceiling_verdict: one seed: provisional" in shown
    assert "loss.type" in shown


def test_the_figure_of_a_variant_is_drawn(pages):
    pages.open(f"runs/{pages.ids['loo-loss']}/artifacts/curve.png")
    drawn = "() => [...document.images].some(image => image.naturalWidth > 500 && image.naturalHeight > 200)"
    pages.page.wait_for_function(drawn)
    assert pages.elsewhere == []


def test_mlflow_opens_on_the_runs_with_the_columns_that_matter_first_and_the_best_variant_on_top(pages):
    pages.page.goto(pages.runs)
    pages.page.get_by_role("link", name="loo-curriculum", exact=True).wait_for()
    headings = pages.page.get_by_role("columnheader").all_inner_texts()
    shown = list(dict.fromkeys(heading.strip() for heading in headings if heading.strip() in COLUMN_NAMES))
    assert shown == COLUMN_NAMES[: len(shown)]
    assert len(shown) >= 4
    names = [name for name in pages.page.get_by_role("link").all_inner_texts() if name in pages.ids]
    assert names == ["scalerl", "loo-curriculum", "loo-loss"]  # by level; without their seeds
    assert "/runs?workflowType=machine_learning" in pages.page.url


def test_the_chart_of_the_runs_is_the_pass_rate_against_compute(pages):
    pages.page.goto(f"{pages.runs}&compareRunsMode=CHART")
    axis = pages.page.locator(".js-plotly-plot").get_by_text("eval/compute_gpu_hours", exact=True)
    axis.first.wait_for()
    assert pages.page.locator(".js-plotly-plot").count() == 1
    ends = pages.page.locator(".js-plotly-plot .xtick").all_text_contents()
    assert float(ends[-1]) >= 1500  # of 2000 GPU-hours; there are 80 steps
