"""`scales:` of a sweep file: each scale is a sweep of its own, and the ladder is printed at the end."""

import json
import shutil

import pytest
from fixtures_home import make_ladder, settled
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings.results import read_results
from ablations.home.started_sweep import read_sweep


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a home in which every run of `steps.yaml` is trained at both scales, and its fits are kept."""
    folder = tmp_path_factory.mktemp("ladder")
    home = make_ladder(folder)
    for name in home.sweep_names():
        read_results(settled(read_sweep(home, name)))
    return folder


@pytest.fixture
def trained(fitted, tmp_path, monkeypatch):
    """A copy of it, in which commands run."""
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABLATIONS_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def unsynced(monkeypatch):
    """No push to MLflow, which takes longer than the rest."""
    monkeypatch.setattr("ablations.tracking.beside_a_sweep.Tracker.begin_last", lambda tracker: None)


def platform(*arguments, code=0):
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_file_with_scales_is_a_sweep_at_each_and_ends_in_the_ladder(trained):
    printed = platform("sweep", "steps.yaml")
    assert [path.name for path in sorted((trained / "home" / "sweeps").iterdir())] == ["steps@bench", "steps@smoke"]
    (line,) = [
        line
        for line in printed.partition("level − scalerl, by scale")[2].splitlines()
        if line.startswith("loss.type=dapo")
    ][:1]
    assert "carries" in line
    found = json.loads(platform("ladder", "steps.yaml", "--json"))
    assert found == json.loads(platform("ladder", "steps@smoke", "steps@bench", "--json"))
    assert [one["scale"] for one in found["scales"]] == ["smoke", "bench"]
    assert found["scales"][0]["parameters"] < found["scales"][1]["parameters"]


def test_a_dry_run_shows_the_scales_of_a_family_and_a_mistake_in_the_last_is_found_before_the_first_trains(trained):
    family = (trained / "steps.yaml").read_text().replace("[smoke, bench]", "{of: smoke, model_size: [0.25, 1]}")
    (trained / "family.yaml").write_text(family.replace("name: steps", "name: family"))
    printed = platform("sweep", "family.yaml", "--dry-run")
    # Half as wide as smoke: one head of 16, mlp 48, a quarter of 625 GPU-hours.
    settings = "model.heads = 1, model.hidden = 16, model.mlp = 48, compute_unit_gpu_hours = 156.25; "
    assert f"scale smoke-size0.25:\nsmoke-size0.25: {settings}" in printed
    assert printed.partition("scale smoke:\n")[2].startswith("variant")
    (trained / "wrong.yaml").write_text(family.replace("[0.25, 1]", "[1, 3]"))
    refused = CliRunner().invoke(app, ["sweep", "wrong.yaml"])
    assert "wrong.yaml:3: scales.model_size.1: found 3, which turns 2 heads into 3.46" in str(refused.exception)
    assert not (trained / "home" / "sweeps" / "wrong@smoke").exists()


def test_status_cancel_and_retry_take_all_scales_and_other_commands_ask_for_one(trained):
    printed = platform("status", "steps.yaml")
    assert printed.index("steps@smoke: 4 done") < printed.index("steps@bench: 4 done")
    assert platform("status", "steps@bench") in printed
    for arguments in (["compare", "steps.yaml"], ["status", "steps.yaml", "--json"], ["status", "steps.yaml", "-w"]):
        refused = str(CliRunner().invoke(app, arguments).exception)
        assert "steps.yaml has one sweep per scale; name one: steps@smoke, steps@bench" in refused
    said = platform("cancel", "steps.yaml")
    assert [line.partition(":")[0] for line in said.splitlines()] == ["steps@smoke", "steps@bench"]
    assert platform("retry", "steps.yaml").count("nothing to retry") == 2


def test_designs_and_checks_go_through_all_scales(trained, monkeypatch):
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
    printed = platform("design", "steps.yaml", "--seeds", "2")
    assert printed.index("steps at scale smoke: ") < printed.index("steps at scale bench: ")
    assert "add --scale" in str(CliRunner().invoke(app, ["design", "steps.yaml", "--json"]).exception)
    found = json.loads(platform("check", "steps.yaml", "--quick", "--json"))["checks"]
    names = {name for one in found for name in one["variants"]}
    assert names == {"scalerl@smoke", "scalerl@bench", "loss.type=dapo@smoke", "loss.type=dapo@bench"}


def test_a_report_of_either_scale_has_the_differences_over_scales(trained):
    platform("report", "steps@smoke", "--format", "md", "--to", "here")
    text = (trained / "here" / "report-md" / "report.md").read_text()
    assert text.startswith("# steps@smoke")
    section = text.partition("## Scale ladder")[2].partition("## In words")[0]
    assert "| variant | smoke | bench | trend | over scales | forecast |" in section
    assert "| carries |" in section
    platform("report", "steps.yaml", "--to", "here")
    page = (trained / "here" / "report.html").read_text()
    assert "<h1>steps@bench</h1>" in page
    assert (
        page.partition("<h2>Scale ladder</h2>")[2].partition("<h2>In words")[0].count("<figure ") == 3
    )  # level, ceiling, compute
    assert ">carries<" in page


def test_cards_of_a_file_with_scales_are_written_at_each_and_judge_what_is_claimed_over_them(trained, unsynced):
    claim = "claims: [{variant: loss.type=dapo, of: level, says: carries, source: our guess}]\n"
    with (trained / "steps.yaml").open("a") as file:
        file.write(claim)
    cards = json.loads(platform("reproduce", "steps.yaml", "--as-written", "--json"))
    assert [(card["study"], card["claims"][0]["outcome"]) for card in cards] == [
        ("steps@smoke", "holds"),
        ("steps@bench", "holds"),
    ]
    found = json.loads(platform("ladder", "steps.yaml", "--json"))
    assert [card["over_scales"] for card in cards] == [found, found]
    printed = platform("reproduce", "steps.yaml")
    assert printed.index("steps@smoke: ") < printed.index("steps@bench: ") < printed.index("level − scalerl, by scale")
    for scale in ("smoke", "bench"):
        text = (trained / "home" / "sweeps" / f"steps@{scale}" / "card.md").read_text()
        assert "| variant | smoke | bench | trend | over scales | forecast |" in text


def test_a_claim_over_scales_is_declared_once_it_stands_at_each_and_by_the_first(trained, unsynced):
    record = trained / "home" / "sweeps" / "steps@bench" / "declared.json"
    with (trained / "steps.yaml").open("a") as file:
        file.write("claims: [{variant: loss.type=dapo, of: level, says: carries, source: our guess}]\n")
    smoke, bench = json.loads(platform("reproduce", "steps.yaml", "--as-written", "--json"))
    written = json.loads((record.parents[1] / "steps@smoke" / "declared.json").read_text())[0]
    assert written["readings"] > 0  # the study was trained before anything was claimed
    assert smoke["claims"][0]["declared"] == {key: written[key] for key in ("at", "readings", "sha256")}
    assert bench["claims"] == smoke["claims"]
    # As if the claim was added after the study at the larger scale, where it has no declaration.
    record.unlink()
    platform("reproduce", "steps.yaml", "--as-written", "--scale", "smoke", "--json")
    card = json.loads((record.parents[1] / "steps@smoke" / "card.json").read_text())
    assert card["claims"][0]["declared"] is None
    assert "carries over scales: not declared" in (record.parents[1] / "steps@smoke" / "card.md").read_text()


def test_a_report_is_written_although_the_sweep_of_another_scale_cannot_be_read_or_is_gone(trained):
    (trained / "home" / "sweeps" / "steps@bench" / "plan.json").write_text("{")
    result = CliRunner().invoke(app, ["report", "steps@smoke", "--format", "md", "--to", "here"])
    assert result.exit_code == 0
    assert "no comparison over scales" in result.stderr
    assert "Scale ladder" not in (trained / "here" / "report-md" / "report.md").read_text()
    shutil.rmtree(trained / "home" / "sweeps" / "steps@bench")
    assert platform("report", "steps.yaml", "--format", "md", "--to", "here")
    assert "Scale ladder" not in (trained / "here" / "report-md" / "report.md").read_text()
