"""What a run's process inherits on a node."""

from pathlib import Path

from ablations.ray.node import ordinary_environment
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


def test_an_order_is_read_as_it_was_written(tmp_path):
    order = RayOrder(
        run=tmp_path / "runs" / "3f0c9a1b2d4e",
        warm_starts=tmp_path / "warm_starts",
        budget_gpu_hours=0.25,
        share=NodeShare(nodes=2, cpus=3, gpus=1, gpu_kind="H100", memory_bytes=2**30),
        threads=2,
        snapshot=tmp_path / "snapshots" / "1",
        directory=Path("/work"),
        allocation="20261127-1",
    )
    order.write(tmp_path / "attempt")
    assert read_order(tmp_path / "attempt") == order
    assert node_log(tmp_path / "attempt", 1) == tmp_path / "attempt" / "1_log.out"
