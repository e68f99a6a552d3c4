"""What Slurm's commands say, with programs in place of them."""

import pytest

from ablations.slurm import commands
from ablations.slurm.commands import SlurmError


def scontrol(monkeypatch, tmp_path, *, said, code):
    """A `scontrol` that says this and ends with this code."""
    program = tmp_path / "scontrol"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_a_hold_passes_over_tasks_of_an_array_that_have_ended(monkeypatch, tmp_path):
    # As Slurm 22.05 says it of an array of six, two of which have ended.
    scontrol(monkeypatch, tmp_path, said="1_0-1: Job has already finished\n1_2-5: No error", code=1)
    commands.hold(["1"])


@pytest.mark.parametrize(
    "said", ["Access/permission denied for job 1", "1_0-1: No error\n1_2: Invalid job id specified"]
)
def test_any_other_refusal_of_a_hold_is_an_error(monkeypatch, tmp_path, said):
    scontrol(monkeypatch, tmp_path, said=said, code=1)
    with pytest.raises(SlurmError, match=said.split()[-1]):
        commands.hold(["1"])
