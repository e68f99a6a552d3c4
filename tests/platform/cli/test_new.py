"""A study to begin with: what `platform new` writes is a sweep file, its alternatives too."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.cli.exit_codes import DISCARD, KEEP, RUN_AGAIN, SAME_AS_BEFORE, WRONG_INPUT
from ablations.cli.new import AGENT_FILES
from ablations.errors import AblationsError
from ablations.study.expand import expand
from ablations.study.sweep import load_sweep


def written(*arguments):
    return CliRunner().invoke(app, ["new", *map(str, arguments)])


def variants_of(path):
    return [one.name for one in expand(path).variants]


def test_the_file_is_a_study_of_its_name(tmp_path):
    path = tmp_path / "mine" / "losses.yaml"
    done = written(path)
    assert done.exit_code == 0
    assert f"sweep {path} --dry-run" in done.output
    sweep = load_sweep(path)
    assert (sweep.name, sweep.reference, sweep.scale, sweep.seeds) == ("losses", "scalerl", "smoke", (0, 1, 2))
    assert variants_of(path) == ["scalerl", "dapo", "token-average", "both"]


@pytest.mark.parametrize("key", ["grid", "leave_one_out"])
def test_what_stands_in_comments_can_take_the_place_of_the_variants(tmp_path, key):
    path = tmp_path / "other.yaml"
    written(path, "--scale", "laptop")
    lines = path.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("variants:", "  "))]
    path.write_text("\n".join(line.removeprefix("# ") if line.startswith(f"# {key}:") else line for line in kept))
    assert len(variants_of(path)) >= 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{}/there.yaml"], r"there.yaml exists; name another file, or delete it"),
        (["{}/mine"], r"a sweep file ends in .yaml; write .*/mine.yaml"),
        (["{}/my study.yaml"], r"takes its name from the file, but 'my study' is not a name"),
        (["{}/mine.yaml", "--scale", "laptp"], r"unknown scale 'laptp'; did you mean 'laptop'"),
    ],
)
def test_a_mistake_writes_nothing(tmp_path, arguments, said):
    (tmp_path / "there.yaml").write_text("name: there\n")
    done = written(*(one.format(tmp_path) for one in arguments))
    assert isinstance(done.exception, AblationsError)
    with pytest.raises(AblationsError, match=said):
        raise done.exception
    assert [one.name for one in tmp_path.iterdir()] == ["there.yaml"]
    assert (tmp_path / "there.yaml").read_text() == "name: there\n"


@pytest.mark.slow
def test_a_folder_for_an_agent_is_a_campaign_that_runs(tmp_path, monkeypatch):
    folder, home = tmp_path / "mine", f"--home={tmp_path / 'home'}"
    assert written(folder, "--agent").exit_code == 0
    assert {one.name for one in folder.iterdir()} == {"SKILL.md", "study.yaml", "settings.yaml", "train.py"}
    with pytest.raises(AblationsError, match="exists; name another folder"):
        CliRunner().invoke(app, ["new", str(folder), "--agent"], catch_exceptions=False)
    monkeypatch.chdir(folder)

    def platform(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "ablations.cli", *arguments, home], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    platform("sweep", "study.yaml")
    platform("campaign", "night", "--proposals", "60")
    start = platform("keep", "night", "start", "study")
    assert "4 fresh runs" in start
    assert platform("keep", "night", "start", "study") == start  # no run counts twice
    assert platform("keep", "night", "again", "study", "--variant", "settings", code=12).startswith("Same as before")
    # .046 higher with a run-to-run sd of .008, as the comparison of the same runs says too
    assert platform("keep", "night", "faster", "study").startswith("Keep: faster")


def test_the_skill_is_one_page_that_names_every_exit_code():
    text = (AGENT_FILES / "SKILL.md").read_text()
    assert text.startswith("---\nname: ")
    assert len(text.splitlines()) <= 60
    for code in (KEEP, DISCARD, RUN_AGAIN, SAME_AS_BEFORE, WRONG_INPUT):
        assert f"| {code} |" in text
