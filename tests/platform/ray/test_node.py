"""What a run's process inherits on a node."""

from pathlib import Path

import pytest

from ablations.ray import node
from ablations.ray.node import ordinary_environment, run_part
from ablations.ray.order import NodeShare, RayOrder, node_log, read_order


def test_nothing_of_rays_enters_the_environment_of_a_run():
    worker = {
        "PATH": "/bin",
        "PYTHONPATH": "/site",
        "CUDA_VISIBLE_DEVICES": "3",
        "LD_LIBRARY_PATH": "/cuda",
        "RAY_JOB_ID": "01000000",
        "RAY_worker_niceness": "15",
        "PYTHONBREAKPOINT": "ray.util.rpdb.set_trace",
    }
    assert ordinary_environment(worker, Path("/home/snapshots/1")) == {
        "PATH": "/bin",
        "PYTHONPATH": "/home/snapshots/1:/site",
        "CUDA_VISIBLE_DEVICES": "3",
        "LD_LIBRARY_PATH": "/cuda",
    }


@pytest.mark.parametrize(("gpus", "seen"), [(0, ""), (1, "3")])
def test_a_run_that_asked_for_no_gpu_sees_none(tmp_path, monkeypatch, gpus, seen):
    """Ray 2.60.0 leaves all GPUs of the node visible to a worker with `num_gpus=0`."""
    order_of(tmp_path, gpus=gpus).write(tmp_path / "attempt")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv(node.RAYLET, "0")
    began = []
    monkeypatch.setattr(node, "run_python", lambda _, environment, *__: began.append(environment) or "")
    assert run_part(tmp_path / "attempt", 0, "10.0.0.1") == ""
    assert [one["CUDA_VISIBLE_DEVICES"] for one in began] == [seen]


def order_of(tmp_path, *, gpus):
    return RayOrder(
        run=tmp_path / "runs" / "3f0c9a1b2d4e",
        warm_starts=tmp_path / "warm_starts",
        budget_gpu_hours=0.25,
        share=NodeShare(nodes=2, cpus=3, gpus=gpus, gpu_kind="H100", memory_bytes=2**30),
        threads=2,
        snapshot=tmp_path / "snapshots" / "1",
        directory=Path("/work"),
        allocation="20261127-1",
    )


def test_an_order_is_read_as_it_was_written(tmp_path):
    order = order_of(tmp_path, gpus=1)
    order.write(tmp_path / "attempt")
    assert read_order(tmp_path / "attempt") == order
    assert node_log(tmp_path / "attempt", 1) == tmp_path / "attempt" / "1_log.out"
