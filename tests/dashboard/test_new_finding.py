"""A new finding is what it computes and one document: every writer then shows it."""

import io
import json
import shutil
from dataclasses import asdict, dataclass

import pytest
from fixtures_home import TRUTH, make_home, planned_run, write_run
from streamlit.testing.v1 import AppTest

from ablations.findings.results import Results, read_results
from ablations.report.documents.blocks import Blocks, Text, table_of_rows
from ablations.report.documents.number_cells import compute_cell
from ablations.report.writers.latex import latex_files
from ablations.report.writers.markdown import markdown_files
from ablations.report.writers.page import page_of
from ablations.report.writers.terminal import print_document
from ablations.terminal.screen import Screen
from ablations.text import compute_text


@dataclass(frozen=True, kw_only=True)
class RunCosts:
    """The compute of each run, largest first: `RunCosts(sweep="loo", unit="GPU-hours", costs={"dapo-s0": 2000.0})`."""

    sweep: str
    unit: str
    costs: dict[str, float]


def run_costs(results: Results) -> RunCosts:
    """The finding: which run used the most compute."""
    runs = sorted(results.runs, key=lambda run: -run.cost_gpu_hours)
    costs = {run.name: run.cost_gpu_hours for run in runs}
    return RunCosts(sweep=results.plan.sweep, unit=results.plan.compute_name, costs=costs)


def run_costs_document(found: RunCosts) -> Blocks:
    """Its document."""
    first, cost = next(iter(found.costs.items()))
    rows = [{"run": name, f"cost, {found.unit}": compute_cell(cost)} for name, cost in found.costs.items()]
    lead = f"{first} used the most compute, {compute_text(cost)} {found.unit}."
    return [Text(text=lead, kind="lead"), table_of_rows(rows, name="costs", title=f"{found.sweep}: compute by run")]


def page(home: str) -> None:
    from pathlib import Path

    from dashboard.test_new_finding import run_costs, run_costs_document

    from ablations.findings.results import read_results
    from ablations.home.home import Home
    from ablations.home.started_sweep import read_sweep
    from ablations_dashboard.widgets.document import show_document

    found = run_costs(read_results(read_sweep(Home(Path(home)), "loo")))
    show_document(run_costs_document(found), scope="loo")


def test_every_writer_shows_a_finding_of_which_it_has_never_heard(tmp_path):
    sweep, longer = make_home(tmp_path), planned_run("loo-loss", 0)
    shutil.rmtree(sweep.home.run(longer.id).path)
    write_run(sweep.home, longer.id, TRUTH["loo-loss"], fraction=1.5)
    found = run_costs(read_results(sweep))
    first, *others = found.costs
    assert first == "loo-loss-s0"
    assert json.loads(json.dumps(asdict(found)))["costs"][first] == 3000.0
    document = run_costs_document(found)
    out = io.StringIO()
    print_document(document, Screen(file=out, width=80))
    markdown = markdown_files(document, "costs.md")["costs.md"].decode()
    latex = latex_files(document, "costs.tex")["costs.tex"].decode().replace("{-}", "-")
    for text in (out.getvalue(), page_of(document, title="costs"), markdown, latex):
        places = [text.index(said) for said in ("loo-loss-s0 used the most compute, 3,000", *others)]
        assert places == sorted(places)
        assert "loo: compute by run" in text
    shown = AppTest.from_function(page, args=(str(tmp_path),), default_timeout=250).run()
    assert r"loo\-loss\-s0 used the most compute" in shown.markdown[0].value
    assert shown.dataframe[0].value.iloc[:, 1].tolist() == pytest.approx([*found.costs.values()])
