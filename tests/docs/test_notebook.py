"""docs/notebook.ipynb: its cells run in order on the sweep of a home folder, as Jupyter would run them."""

import ast
import json

import pandas as pd
import pytest
from fixtures_home import make_home
from places import REPOSITORY

NOTEBOOK = json.loads((REPOSITORY / "docs/notebook.ipynb").read_text())
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each cell shows: the value of its last line if that is an expression, else None."""
    folder = tmp_path_factory.mktemp("notebook")
    make_home(folder / "ablation-runs", seeds=(0, 1, 2))
    names: dict[str, object] = {}
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("ABLATIONS_HOME", raising=False)
        for cell in CELLS:
            *lines, last = ast.parse(cell).body
            is_value = isinstance(last, ast.Expr)
            exec(compile(ast.Module(lines if is_value else [*lines, last], []), "notebook.ipynb", "exec"), names)
            found.append(
                eval(compile(ast.Expression(last.value), "notebook.ipynb", "eval"), names) if is_value else None
            )
        assert (folder / "curves.pdf").read_bytes().startswith(b"%PDF-")
    return found


def test_the_notebook_shows_the_sweep_its_table_and_its_figures(shown):
    names, results, curves, differences, *_ = shown
    assert names == ["loo"]
    assert "<td>loo-curriculum</td>" in results._repr_html_()
    assert "loo-curriculum" in str(curves.to_json())
    assert "loo-curriculum" in str(differences.to_json())


def test_the_frames_of_the_notebook_hold_what_the_runs_were_drawn_from(shown):
    numbers, readings, forecast = [frame for frame in shown if isinstance(frame, pd.DataFrame)]
    assert list(numbers["variant"])[-1] == "loo-loss"
    assert len(numbers) == 3
    # the last of 41 evaluations, one every 50 of 2000 GPU-hours
    last = readings.to_dict("records")[-1]
    assert (last["compute"], last["samples"]) == (2000, 16000)
    # eq. 1 at 4000: 0.31 + 0.23 / (1 + (320 / 4000)^1.8) = 0.5376
    pass_rates = {row["variant"]: row["pass_rate"] for row in forecast.to_dict("records")}
    assert pass_rates["loo-loss"] == pytest.approx(0.5376, abs=0.01)
