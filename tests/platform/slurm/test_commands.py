"""What Slurm's commands say, with programs in place of them."""

import pytest

from ablations.slurm import commands
from ablations.slurm.commands import SlurmError


def program(monkeypatch, tmp_path, name, *, said, code):
    """A program in PATH that says this and ends with this code."""
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\ncat {'>&2' if code else ''} <<'END'\n{said}\nEND\nexit {code}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def test_a_hold_passes_over_tasks_of_an_array_that_have_ended(monkeypatch, tmp_path):
    # As Slurm 22.05 says it of an array of six, two of which have ended.
    program(monkeypatch, tmp_path, "scontrol", said="1_0-1: Job has already finished\n1_2-5: No error", code=1)
    commands.hold(["1"])


@pytest.mark.parametrize(
    "said", ["Access/permission denied for job 1", "1_0-1: No error\n1_2: Invalid job id specified"]
)
def test_any_other_refusal_of_a_hold_is_an_error(monkeypatch, tmp_path, said):
    program(monkeypatch, tmp_path, "scontrol", said=said, code=1)
    with pytest.raises(SlurmError, match=said.split()[-1]):
        commands.hold(["1"])


def test_a_partition_is_as_large_as_its_largest_node(monkeypatch, tmp_path):
    # As Slurm 22.05 says it of a partition over two kinds of nodes.
    said = (
        "low*|2:00:00|4|8000|(null)|1\nmixed|2-00:00:00|4|8000|(null)|1\nmixed|2-00:00:00|64|256000|gpu:h100:8(S:0-1)|1"
    )
    program(monkeypatch, tmp_path, "sinfo", said=said, code=0)
    low, mixed = commands.partitions()
    assert (low.name, low.is_default, low.time_limit_min, low.gpus) == ("low", True, 120.0, 0)
    assert (mixed.cpus, mixed.memory_mb, mixed.gpus, mixed.nodes) == (64, 256000, 8, 2)
    assert (mixed.is_default, mixed.time_limit_min) == (False, 2880.0)


def test_without_accounting_nothing_is_known_of_a_quality_of_service(monkeypatch, tmp_path):
    program(monkeypatch, tmp_path, "sacctmgr", said="You are not running a supported accounting_storage plugin", code=1)
    assert commands.qos_flags("long") == frozenset()
