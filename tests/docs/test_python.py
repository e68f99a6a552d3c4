"""docs/python.md: every name of `ablations` with an example, and every example gives what it says."""

import csv
import doctest
import re
import subprocess
import sys

import pytest
from fixtures_home import make_home
from places import REPOSITORY

import ablations
from ablations.findings.results import read_results

PAGE = (REPOSITORY / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"^```pycon\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What the page says of the folder in which its examples run."""
    sweep = make_home(tmp_path / "ablation-runs", seeds=(0, 1, 2))
    with (tmp_path / "curves.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["curve", "compute", "score", "samples"])
        for run in read_results(sweep).runs[:6]:
            curve = run.curve
            assert curve is not None
            assert curve.samples is not None
            writer.writerows([run.name, *row] for row in zip(curve.compute, curve.score, curve.samples, strict=True))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_give_what_the_page_says(folder):
    examples = doctest.DocTestParser().get_doctest("\n".join(EXAMPLES), {}, "python.md", "docs/python.md", 0)
    said: list[str] = []
    doctest.DocTestRunner().run(examples, out=said.append)
    assert not said, "".join(said)
    assert (folder / "curves.html").stat().st_size > 10_000


def test_every_name_is_there_and_has_an_example_and_a_reference():
    used = set(re.findall(r"ablations\.(\w+)", "".join(EXAMPLES)))
    assert used | {"Fit"} == set(ablations.__all__)
    assert re.search(r"^`Fit` prints", PAGE, flags=re.MULTILINE)
    documented = {path.rpartition(".")[2] for path in re.findall(r"^::: (\S+)$", PAGE, flags=re.MULTILINE)}
    assert set(ablations.__all__) <= documented
    assert set(ablations.MODULES) == set(ablations.__all__) == set(dir(ablations)) - {"__version__"}
    for name in ablations.__all__:
        assert getattr(ablations, name).__module__ == f"ablations.{ablations.MODULES[name]}"


def test_the_import_alone_loads_nothing_heavy():
    code = (
        "import sys, ablations; sys.exit(' '.join({'numpy', 'scipy', 'pandas', 'plotly', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
