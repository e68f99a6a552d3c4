"""Passwords in arguments and settings: no report, page or archive has them, and the study goes on with them."""

import json
import stat
import tarfile
from pathlib import Path

import pytest
from integration.conftest import run_platform
from own_programs import write_study

PASSWORD = "hunter2secret"
URL = f"http://ada:{PASSWORD}@127.0.0.1:9/x"
SCRIPT = """
assert run.settings["db"]["password"] == PASSWORD, run.settings
print("connecting to", run.settings["db"]["url"])
go_on(10)
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    script, axes = f"PASSWORD = {PASSWORD!r}\n{SCRIPT}", f"{{rate: {{other: {{db.url: '{URL}/2'}}}}}}"
    file = write_study(tmp_path / "study", script, axes=axes, seeds="[0]")
    (file.parent / "settings.yaml").write_text(f"rate: 0.1\ndb: {{url: 'http://127.0.0.1:9', password: {PASSWORD}}}\n")
    return file


def holders(folder: Path) -> set[str]:
    """Names of the files below a folder that hold the password."""
    return {path.name for path in folder.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()}


@pytest.mark.studies
def test_a_password_is_in_no_output_and_the_study_goes_on_with_it(platform, study, home, tmp_path):
    options = ("--tracking-uri", URL, "--set", f"db.url={URL}")
    said = platform("sweep", str(study), *options)
    outputs = [said.stdout, said.stderr]
    name = json.loads(platform("list", "--json").stdout)[0]["name"]
    platform("sync", name)  # into the home folder's own store
    for command in (
        *(["status"], ["show"], ["show", "--json"], ["show", "--variant", "settings"], ["compare", "--json"]),
        *(["report"], ["report", "--format", "md", "--to", str(tmp_path / "report")], ["logs", "settings"]),
    ):
        result = platform(*command)
        outputs += [result.stdout, result.stderr]
    refused = platform("sync", name, "--tracking-uri", URL, code=3)
    failed = platform("import", "x", "--mlflow", URL, "--score", "a", "--compute", "b", code=None)
    outputs += [refused.stdout, refused.stderr, failed.stdout, failed.stderr]
    assert not [text for text in outputs if PASSWORD in text]
    assert holders(tmp_path / "report") == set()

    # What the program is given, which only its owner may read, and what the program has printed.
    assert holders(home) == {"recipe.json", "config.yaml", "attempt-1.log"}
    for path in (*home.glob("runs/*/recipe.json"), *home.glob("runs/*/config.yaml")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    archive = tmp_path / "shared.tar.gz"
    platform("export", name, "--to", str(archive))
    with tarfile.open(archive) as held:
        held.extractall(tmp_path / "archive", filter="data")
    assert (tmp_path / "archive" / "sweep" / "plan.json").exists()
    assert holders(tmp_path / "archive") == set()

    # The imported runs are those of the file, which brings its password along.
    there = tmp_path / "there"
    run_platform(there, "import", str(archive))
    printed = run_platform(there, "show", name, "--variant", "settings").stdout
    assert "http://***@127.0.0.1:9/x" in printed
    again = run_platform(there, "sweep", str(study), *options)
    assert not [text for text in (again.stdout, again.stderr) if PASSWORD in text]
    assert len(list(there.glob("runs/*"))) == len(list(home.glob("runs/*"))) == 2
    assert holders(there) == {"recipe.json"}


@pytest.mark.studies
def test_the_plan_of_an_earlier_version_shows_no_password(platform, study, home, tmp_path):
    platform("sweep", str(study))
    plan = home / "sweeps" / "own" / "plan.json"
    content = json.loads(plan.read_text()) | {"command": f"platform sweep own.yaml --tracking-uri {URL}"}
    content["variants"][1]["overrides"] = {"db.url": URL}
    plan.write_text(json.dumps(content))
    outputs = [platform(*command).stdout for command in (["show"], ["show", "--json"], ["compare"], ["status"])]
    outputs.append(platform("report", "--to", str(tmp_path / "report")).stdout)
    assert not [text for text in outputs if PASSWORD in text]
    assert "http://***@127.0.0.1:9/x" in outputs[0]
    assert holders(tmp_path / "report") == set()
    platform("export", "own", "--to", str(tmp_path / "own.tar.gz"))
    with tarfile.open(tmp_path / "own.tar.gz") as held:
        held.extractall(tmp_path / "archive", filter="data")
    assert holders(tmp_path / "archive") == set()
