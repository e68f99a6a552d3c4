"""What a run asks of a cluster, and how many runs fit into one; the cases are counted by hand."""

import pytest

from ablations.ray.order import NodeShare, places_on, runs_at_once, share_of, why_none
from ablations.study.resources import Resources

GB = 2**30
BIG = {"CPU": 16.0, "GPU": 8.0, "memory": 64.0 * GB, "accelerator_type:H100": 1.0}
SMALL = {"CPU": 4.0, "memory": 8.0 * GB}


def share(**more):
    return NodeShare(**{"nodes": 1, "cpus": 2, "gpus": 0, "gpu_kind": "", "memory_bytes": GB} | more)


@pytest.mark.parametrize(
    ("asked", "on_big", "on_small"),
    [
        (share(), 8, 2),  # by processors
        (share(memory_bytes=5 * GB), 8, 1),  # by memory on the small one
        (share(gpus=3), 2, 0),
        (share(gpus=8, gpu_kind="H100"), 1, 0),
        (share(gpus=1, gpu_kind="A100"), 0, 0),
    ],
)
def test_a_node_holds_what_its_scarcest_resource_allows(asked, on_big, on_small):
    assert (places_on(BIG, asked), places_on(SMALL, asked)) == (on_big, on_small)


def test_the_nodes_of_one_run_are_different_nodes():
    # Places 8, 2, 2: six runs would need twelve places on pairs of nodes, but the small ones pair with four at most.
    assert runs_at_once([BIG, SMALL, SMALL], share(nodes=2)) == 4
    assert runs_at_once([BIG], share(nodes=2)) == 0
    assert runs_at_once([BIG, SMALL, SMALL], share(nodes=3)) == 2
    assert runs_at_once([BIG, SMALL, SMALL], share()) == 12


def test_what_no_node_holds_is_said_with_what_there_is():
    said = why_none([BIG, SMALL], share(nodes=2, gpus=8))
    assert said == "a run needs 2 nodes with 8 GPUs, 2 CPUs and 1 GB, and of 2 nodes of the Ray cluster 1 can hold that"


def test_a_share_is_what_the_resources_ask_of_each_node():
    asked = Resources.model_validate({"nodes": 2, "gpus": "h100:4", "mem_gb": 0.5, "partition": "of Slurm"})
    found = share_of(asked, threads=3)
    assert found == NodeShare(nodes=2, cpus=3, gpus=4, gpu_kind="H100", memory_bytes=GB // 2)
    assert found.resources == {"CPU": 3, "GPU": 4, "memory": GB // 2, "accelerator_type:H100": 0.001}
