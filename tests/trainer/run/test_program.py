"""One attempt at a program's run: its end at the budget, by itself, by failure, by a signal; and the next attempt."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from own_programs import OTHER_TRAINER, program_run
from waiting import wait_until

from scalerl.errors import ProgramFailed
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train

JOB = (
    "import sys; from pathlib import Path; from ablations.pools.job import train_run; "
    "train_run(Path(sys.argv[1]), float(sys.argv[2]), Path('none'))"
)


def attempt(run: RunFolder, budget: float = 100.0) -> None:
    train(run.path, budget_gpu_hours=budget, warm_starts=Path("none"))


def job(run: RunFolder, budget: float = 100.0) -> subprocess.Popen:
    """The job of a pool, in a process of its own, with its output in the log of the attempt."""
    return subprocess.Popen([sys.executable, "-c", JOB, str(run.path), str(budget)])


def steps_of(run: RunFolder) -> list[int]:
    return [row["step"] for row in read_rows(run.metrics)]


def program_of(run: RunFolder) -> int:
    """Process id that the program has written."""
    path = run.work / "pid"
    return int(wait_until(lambda: path.exists() and path.read_text(), "the program's pid"))


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_program_is_ended_at_its_budget_and_the_run_is_done(tmp_path):
    run = program_run(tmp_path, "go_on(10**9, pause=0.02)")
    attempt(run, 50.0)
    status = run.read_status()
    assert (status.state, status.message) == ("done", "")
    assert status.compute_gpu_hours >= 50
    assert status.pass_rate == status.step / 1000


def test_a_larger_budget_goes_on_from_the_programs_own_checkpoint(tmp_path):
    run = program_run(tmp_path, "go_on(run.budget / 10)")
    attempt(run, 50.0)
    attempt(run, 100.0)
    assert steps_of(run) == list(range(11))
    assert (run.read_status().state, run.read_status().attempt) == ("done", 2)


def test_a_program_that_ends_below_its_budget_is_stopped_and_says_so(tmp_path):
    run = program_run(tmp_path, "go_on(4)", compute="tokens")
    attempt(run)
    status = run.read_status()
    assert status.state == "stopped"
    assert status.message == "the program ended by itself with exit code 0 at 40 of 100 tokens, short of its budget"


def test_a_failed_run_says_the_exit_code_and_the_last_lines(tmp_path):
    run = program_run(tmp_path, "go_on(2)\nprint('one')\nsys.exit('no data in /nowhere')")
    assert job(run).wait() == 0
    status = run.read_status()
    assert status.state == "failed"
    assert status.message == (
        "the program ended with exit code 1 at 20 of 100 compute: no data in /nowhere. Lines before it: one"
    )


@pytest.mark.parametrize(
    ("text", "within_s", "words"),
    [
        ("time.sleep(600)", 1.0, r"no evaluation was logged within 1 s \(first_row_within_s\)"),
        ("", 200.0, "the program ended with exit code 0 without logging an evaluation"),
    ],
)
def test_a_program_that_logs_nothing_fails_with_that_reason(tmp_path, text, within_s, words):
    run = program_run(tmp_path, text, first_row_within_s=within_s)
    with pytest.raises(ProgramFailed, match=words):
        attempt(run)
    assert run.read_status().state == "failed"


def test_other_code_than_planned_is_refused(tmp_path):
    run = program_run(tmp_path, "go_on(10)")
    (tmp_path / "train.py").write_text("print('another')")
    with pytest.raises(
        ProgramFailed, match=r"the code has changed since the run was planned \(train.py in .*restore it"
    ):
        attempt(run)
    assert steps_of(run) == []


def test_a_program_that_is_gone_is_named(tmp_path):
    run = program_run(tmp_path, "", command=["./none"])
    with pytest.raises(ProgramFailed, match=r"\./none does not start in .* \(No such file"):
        attempt(run)


SAVES = """
(run.folder / "pid").write_text(str(os.getpid()))
def save(*_):
    (run.folder / "saved").write_text(str(step))
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
go_on(10**9, pause=0.02)
"""


def test_sigterm_reaches_the_program_which_may_save_before_it_ends(tmp_path):
    run = program_run(tmp_path, SAVES)
    process = job(run, 1e9)
    wait_until(lambda: len(steps_of(run)) > 3, "four rows", process=process)  # the last is not counted yet
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert (run.read_status().state, run.read_status().message) == ("cancelled", "asked to stop")
    assert int((run.work / "saved").read_text()) > 2


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace_time(tmp_path):
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n(run.folder / 'pid').write_text(str(os.getpid()))\n"
    run = program_run(tmp_path, text + "go_on(10**9, pause=0.02)", grace_s=0.5)
    attempt(run, 20.0)
    assert run.read_status().state == "done"
    assert is_gone(program_of(run))


def test_processes_that_the_program_leaves_behind_end_with_it(tmp_path):
    text = "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
    run = program_run(tmp_path, text + "(run.folder / 'pid').write_text(str(child.pid))\ngo_on(10)")
    attempt(run)
    wait_until(lambda: is_gone(program_of(run)), "the end of the program's child")


def test_after_a_kill_the_next_attempt_resumes_and_no_row_is_doubled(tmp_path):
    run = program_run(tmp_path, "(run.folder / 'pid').write_text(str(os.getpid()))\ngo_on(run.budget / 10, pause=0.05)")
    process = job(run, 1e9)
    wait_until(lambda: len(steps_of(run)) > 4, "five rows", process=process)
    process.kill()
    process.wait()
    wait_until(lambda: is_gone(program_of(run)), "the program's end with the process that had started it")
    last = steps_of(run)[-1] + 10
    assert job(run, 10.0 * last).wait() == 0
    assert steps_of(run) == list(range(last + 1))
    assert run.read_status().state == "done"


AS_VERL = {"path": "{folder}/metrics.jsonl", "trainer": "verl", "gpus": 10.0}


def of_other_trainer(folder: Path, last: int, **log) -> RunFolder:
    return program_run(folder, OTHER_TRAINER.replace("LAST", str(last)), preamble="", log={**AS_VERL, **log})


def test_a_program_that_logs_as_another_trainer_is_followed_to_its_budget_unless_its_log_loses_its_beginning(tmp_path):
    run = of_other_trainer(tmp_path, 10**9)
    assert job(run, 5.0).wait() == 0
    assert (run.read_status().state, run.read_status().message) == ("done", "")
    rows = list(read_rows(run.metrics))
    assert rows[5]["compute_gpu_hours"] == pytest.approx(5.0)  # five steps of 360 s on ten GPUs
    assert [row["pass_rate"] for row in rows[:6]] == pytest.approx([0.2, 0.21, 0.22, 0.23, 0.24, 0.25])
    assert [row["step"] for row in rows] == list(range(len(rows)))
    assert job(run, 8.0).wait() == 0
    assert steps_of(run) == list(range(len(steps_of(run))))
    assert run.read_status().compute_gpu_hours >= 8
    before, log = run.metrics.read_bytes(), run.work / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[3:]))
    assert job(run, 50.0).wait() == 0
    assert run.read_status().state == "failed"
    assert "began at step 0 and now begins at step 3, so its compute is too low" in run.read_status().message
    assert run.metrics.read_bytes() == before


def test_a_log_that_cannot_be_read_is_the_reason_of_the_failure(tmp_path):
    run = of_other_trainer(tmp_path, 3, score="val-core/math/acc")
    assert job(run).wait() == 0
    status = run.read_status()
    assert status.state == "failed"
    assert "without logging an evaluation in" in status.message
    assert "no column 'val-core/math/acc'" in status.message
    assert "val-core/math/acc/mean@8" in status.message


def test_a_log_that_becomes_unreadable_is_named_when_the_program_ends_short(tmp_path):
    run = of_other_trainer(tmp_path, 60)
    script = Path(tmp_path / "train.py")
    text = script.read_text() + "\nopen(path, 'ab').write(b'\\n\\xff\\xff\\n{}\\n')\n"
    run = program_run(tmp_path, text, preamble="", log=AS_VERL)
    assert job(run).wait() == 0
    status = run.read_status()
    assert (status.state, "could not be read to the end" in status.message) == ("stopped", True)
    assert "not UTF-8" in status.message
