"""The pages of a study whose trainer is a program: nothing of a scale, a task or a recipe of ours is asked of it."""

from pathlib import Path

import pytest
from dashboard.app_pages import figures_of, messages, open_page
from own_programs import write_study

from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.log import start
from ablations.running.make_plan import make_plan
from ablations.running.run_sweep import prepare
from ablations.study.expand import expand
from scalerl.run.run_folder import RunFolder
from scalerl.run.status_file import StatusFile


def log_curve(run: RunFolder, top: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log and status of a finished run, the log as a program writes it."""
    for name, value in {"LOG": run.metrics, "FOLDER": run.work, "SEED": 0, "BUDGET": 100, "SETTINGS": "{}"}.items():
        monkeypatch.setenv(f"ABLATIONS_{name}", str(value))
    log = start()
    for step in range(11):
        log.log(step=step, compute=10 * step, right=round(1000 * (0.2 + top * step / (step + 3))), of=1000)
    status = StatusFile(run, 100.0, "code")
    status.beat(every=0.0, step=10, compute_gpu_hours=100.0, pass_rate=0.5, wall_s=3.0)
    status.write("done")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = write_study(tmp_path / "study", "")
    study = expand(file)
    home = Home(tmp_path / "home")
    sweep = StartedSweep(home=home, plan=make_plan(study, "own", budget=None, command="platform sweep own.yaml"))
    sweep.folder.mkdir(parents=True)
    prepare(study, sweep, file)
    for run in study.runs:
        log_curve(home.run(run.id), 0.4 if run.variant == "settings" else 0.3, monkeypatch)
    return home.path


def test_every_page_shows_a_study_of_a_program(home, monkeypatch):
    for page in ("sweeps", "compare", "forecast", "run", "recipes"):
        shown = open_page(monkeypatch, home, page, sweep="own")
        assert "Traceback" not in messages(shown)
        assert page != "compare" or "tokens" in str(figures_of(shown))
