"""The trap of a batch script, with a bash and no cluster; that Slurm then holds the array is tests/slurm."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ablations.home.home import Home
from ablations.slurm.hold import NEVER_BEGAN, TOO_LARGE, TRAP, read_hold, trap_folder, trap_lines
from ablations.slurm.submissions import log_folder, new_submission

NO_SPACE = "oom_kill event in StepId=17.0. Some of the step tasks have been OOM Killed.\n"


class Array:
    """Jobs 17_0, 17_1, ... of a submission, ended one after the other; `scontrol` only writes down what it is told."""

    def __init__(self, folder: Path) -> None:
        self.home, self.told = Home(folder / "o'brien & $HOME"), folder / "told"
        self.submission = new_submission("loo", ("81d2f0a95c3b", "3f0c9a1b2d4e"), 8.0, folder, {})
        self.submission.write(self.home)
        log_folder(self.home, self.submission).mkdir(parents=True)
        commands = folder / "bin"
        commands.mkdir()
        (commands / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {self.told}\n')
        (commands / "scontrol").chmod(0o755)
        self.environment = {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "20",
            "SLURM_ARRAY_JOB_ID": "17",
        }

    def end(self, code: int, *, task: int = 0, log: str = "") -> None:
        """A job that ends with a code."""
        if log:
            (log_folder(self.home, self.submission) / f"17_{task}_0_log.err").write_text(log)
        script = "\n".join([*trap_lines(self.home, self.submission), f"exit {code}"])
        done = subprocess.run(
            ["bash", "-c", script], env=self.environment | {"SLURM_ARRAY_TASK_ID": str(task)}, check=False
        )
        assert done.returncode == code

    def begin(self) -> None:
        """A job that gets as far as our code."""
        (trap_folder(self.home, self.submission) / "began").touch()

    @property
    def hold(self) -> str:
        """What is said of the hold, if there is one."""
        hold = read_hold(self.home, "loo")
        assert (hold is None) == (not self.told.exists())
        return hold.cause if hold else ""


@pytest.fixture
def array(tmp_path):
    return Array(tmp_path)


def test_the_third_job_in_a_row_that_dies_before_training_holds_the_array(array):
    array.end(3)
    array.end(127)
    assert array.hold == ""
    array.end(3)
    assert array.hold == NEVER_BEGAN
    assert array.told.read_text() == "hold 17\n"


def test_a_job_that_ends_well_and_one_that_is_cancelled_are_not_counted(array):
    for code in (3, 3, 143, 0, 3, 3, 143):
        array.end(code)
    assert array.hold == ""


def test_jobs_whose_code_began_are_counted_only_when_slurm_ended_them_for_their_memory(array):
    array.end(0)
    array.begin()
    for _ in range(3):
        array.end(1)  # a run that failed: its own job looks back
    assert array.hold == ""
    for task in range(3):
        array.end(137, task=task, log=NO_SPACE)
    assert array.hold == TOO_LARGE


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_trap_is_clean_shell():
    done = subprocess.run(["shellcheck", str(TRAP)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
