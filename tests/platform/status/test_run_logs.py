"""`platform logs`: which log is meant, how it is followed, and what there is where a run has none."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from fixtures_home import make_home, planned_run, write_state
from typer.testing import CliRunner
from waiting import wait_until

from ablations.cli import app
from ablations.cli.named_sweeps import find_run
from ablations.errors import AblationsError
from ablations.slurm.submissions import new_submission

RUN = planned_run("loo-loss", 1).id
LIMIT_S = 250.0


@pytest.fixture
def home(tmp_path):
    """Two seeds of three variants that train on another machine; only one run has logs."""
    home = make_home(tmp_path, seeds=(0, 1), fraction=0.25, state="running").home
    write(home, 1, "step 1\nended by Slurm\n")
    write(home, 2, "step 2\n")
    home.run(RUN).write_status(replace(home.run(RUN).read_status(), attempt=2))
    return home


def write(home, attempt: int, text: str, run: str = RUN) -> None:
    log = home.run(run).log(attempt)
    log.parent.mkdir(exist_ok=True)
    with log.open("a") as file:
        file.write(text)


def logs(home, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["logs", *arguments, "--home", str(home.path)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def refusal(home, *arguments: str) -> str:
    with pytest.raises(AblationsError) as refused:
        logs(home, *arguments)
    return str(refused.value)


def test_the_last_attempt_is_printed_unless_another_is_asked_for(home):
    assert logs(home, "loo-loss", "--seed", "1") == "step 2\n"
    assert logs(home, RUN, "--attempt", "1") == "step 1\nended by Slurm\n"


def test_an_attempt_that_was_never_made_is_refused_with_those_there_are(home):
    assert f"run {RUN}: no log of attempt 7; attempts with a log: 1, 2" in refusal(home, RUN, "--attempt", "7")
    assert "no log of any attempt; no attempt has a log yet" in refusal(home, "scalerl")
    assert "--follow has no effect with --attempts" in refusal(home, RUN, "--attempts", "-f")
    assert "--attempt 1 has no effect with --attempts" in refusal(home, RUN, "--attempts", "--attempt", "1")


def test_the_attempts_are_listed_with_how_they_ended(home):
    first, second = logs(home, RUN, "--attempts").splitlines()[1:]
    assert first.split()[0] == "1"
    assert first.endswith("ended by Slurm")
    assert (second.split()[0], second.split()[-1]) == ("2", "running")
    assert time.strftime("%Y-%m-%d") in first


def test_of_a_run_that_never_trained_its_jobs_output_is_printed_and_called_so(home):
    never = planned_run("scalerl", 0).id
    submission = replace(new_submission("loo", (RUN, never), 2000.0, home.path, {}), job="17")
    submission.write(home)
    folder = home.sweep("loo") / "submitit" / submission.name
    folder.mkdir(parents=True)
    (folder / "17_1_0_log.out").write_text("")
    (folder / "17_1_0_log.err").write_text("No module named 'torch'\n")
    (folder / "17_0_0_log.err").write_text("of another run\n")
    result = CliRunner().invoke(app, ["logs", never, "--home", str(home.path)], catch_exceptions=False)
    assert result.stdout == "No module named 'torch'\n"
    assert f"run {never}: its last job ended before training began" in result.stderr
    assert str(folder / "17_1_0_log.err") in result.stderr


def test_a_job_that_died_after_an_earlier_attempt_is_what_is_asked_for(home):
    submission = replace(new_submission("loo", (RUN,), 2000.0, home.path, {}), job="18")
    submission.write(home)
    log = home.sweep("loo") / "submitit" / submission.name / "18_0_log.out"
    log.parent.mkdir(parents=True)
    log.write_text("of the job that began attempt 2\n")
    os.utime(log, (1.0, 1.0))
    assert logs(home, RUN) == "step 2\n"
    log.write_text("no such file\n")
    assert logs(home, RUN) == "no such file\n"
    assert logs(home, RUN, "--attempt", "2") == "step 2\n"


def test_following_waits_for_the_first_line_goes_over_to_the_next_attempt_and_ends_with_the_run(home, tmp_path):
    run, output = planned_run("scalerl", 0).id, tmp_path / "output"
    command = [sys.executable, "-m", "ablations.cli", "logs", "scalerl", "--seed", "0", "-f", "--home", str(home.path)]
    with output.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as following:

        def until(text: str) -> None:
            wait_until(lambda: text in output.read_text(), text, process=following, shown=output.read_text)

        try:
            until("is running; waiting for its first line")
            write(home, 1, "step 3, a half", run)
            until("a half")
            write(home, 1, " line\n", run)
            write(home, 2, "step 4\n", run)
            until("step 4")
            write(home, 2, "the end\n", run)
            write_state(home, run, "done")
            assert following.wait(timeout=LIMIT_S) == 0
        finally:
            following.kill()
    said = f"step 3, a half line\n==> attempt 2 <==\nstep 4\nthe end\nrun {run} is done\n"
    assert output.read_text().partition("first line\n")[2] == said


def test_following_one_attempt_ends_when_the_next_begins(home):
    write(home, 3, "step 4\n")
    assert logs(home, RUN, "--attempt", "2", "-f", code=3) == "step 2\n"


def test_following_a_run_that_failed_exits_with_1(home):
    write_state(home, RUN, "failed", message="RuntimeError: no")
    assert "step 2\n" in logs(home, RUN, "-f", code=1)


@pytest.mark.parametrize("name", ["loo-loss-s1", "loo-loss, seed 1", "loo-loss seed 1"])
def test_a_run_is_found_by_every_name_that_an_output_gives_it(tmp_path, name):
    sweep = make_home(tmp_path, seeds=(0, 1))
    assert find_run(sweep.home, name, "loo", None) == planned_run("loo-loss", 1).id
    with pytest.raises(AblationsError, match="unknown run or variant 'loo-loss-s7'"):
        find_run(sweep.home, "loo-loss-s7", "loo", None)
