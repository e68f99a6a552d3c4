"""A program of the user's own as Slurm jobs: preempted, requeued at its time limit, and held after equal failures."""

from pathlib import Path

import pytest
from own_programs import write_study
from slurm.study import SlurmStudy

from scalerl.run.metrics import read_rows


@pytest.fixture
def study(empty, tmp_path):
    return SlurmStudy(cluster=empty, folder=tmp_path / "study")


def write(study: SlurmStudy, script: str, *, resources: str = "", **keys: str) -> None:
    """Replace the study's file by one whose program is `script`."""
    block = f"{{time_min: 10, mem_gb: 1{resources}}}"
    given = {"name": "small", "seeds": "[0]", "budget": "{compute: 300}", "resources": block}
    write_study(study.file.parent, script, **given | keys).rename(study.file)


def steps(home: Path) -> list[list[int]]:
    return [[row["step"] for row in read_rows(path)] for path in home.glob("runs/*/metrics.jsonl")]


@pytest.mark.studies
def test_a_program_that_is_preempted_goes_on_from_its_own_checkpoint(study):
    write(study, "go_on(30, pause=0.3)", resources=", partition: low")
    study.submit()
    study.until_trains("settings")
    high = study.cluster.run(
        *("sbatch", "--parsable", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap", "sleep 3")
    )
    assert high.stdout.strip()
    study.until(lambda rows: rows["settings"]["state"] in ("preempted", "requeued"))
    assert study.until_done()["settings"]["attempt"] == 2
    assert steps(study.home) == [list(range(31))] * 2


@pytest.mark.studies
def test_a_program_at_its_time_limit_is_requeued_and_goes_on(study):
    waits = "if os.environ.get('SLURM_RESTART_COUNT', '0') == '0':\n    go_on(5)\n    time.sleep(600)\ngo_on(30)"
    write(study, waits)
    study.file.write_text(study.file.read_text().replace("time_min: 10", "time_min: 2"))
    study.submit()
    study.until_trains("settings")
    assert {row["attempt"] for row in study.until_done().values()} == {2}
    assert steps(study.home) == [list(range(31))] * 2


def test_three_equal_failures_of_a_program_hold_the_jobs_that_wait(study):
    write(study, "sys.exit('no data')", resources=", at_once: 1", seeds="[0, 1, 2]")
    study.submit()
    study.until(lambda rows: "held because" in str(rows))
    printed = " ".join(study.platform("status", "small", code=None).split())
    assert "held because 3 runs in a row failed: the program ended with exit code 1 at 0 of 300 tokens." in printed
    assert sorted(row["state"] for row in study.runs()) == ["failed"] * 3 + ["queued"] * 3
