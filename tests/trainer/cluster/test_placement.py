"""Placement by its properties, over hundreds of clusters, and the paper's own cluster by hand."""

import re
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from trainer.tiny import tiny_recipe

from scalerl.cluster.placement import PlacedUnit, place, place_run, split
from scalerl.recipe import ResolvedRecipe

NODES = st.lists(st.integers(1, 8), min_size=1, max_size=12)
TENSOR_PARALLEL = st.sampled_from([1, 2, 3, 4, 8])


@st.composite
def fitting(draw):
    """A cluster built around as many units as use all of its devices."""
    width, evaluator = draw(TENSOR_PARALLEL), draw(st.booleans())
    nodes = draw(st.lists(st.integers(1, 8), max_size=4))  # trainers alone
    trainers = sum(nodes)
    shared = draw(st.integers(0 if trainers else 1, 6))  # trainers on a node that has generators too
    groups = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    if shared:
        nodes.append(shared + groups[0] * width)
    nodes += [group * width for group in groups[bool(shared) :]]
    trainers += shared
    generators = sum(groups) - evaluator
    assume(generators >= 1)
    return nodes, {
        "trainers": trainers,
        "generators": generators,
        "tensor_parallel": width,
        "evaluator": evaluator,
    }


@settings(max_examples=300, deadline=None)
@given(fitting())
def test_what_fits_uses_every_device_once_and_splits_no_group_over_nodes(cluster):
    nodes, counts = cluster
    units = place(nodes, **counts)
    used = [(unit.node, device) for unit in units for device in unit.devices]
    assert sorted(used) == [(node, device) for node, devices in enumerate(nodes) for device in range(devices)]
    roles = Counter(unit.role for unit in units)
    expected = {"trainer": counts["trainers"], "generator": counts["generators"]}
    assert roles == expected | ({"evaluator": 1} if counts["evaluator"] else {})
    for role in roles:
        assert [unit.index for unit in units if unit.role == role] == list(range(roles[role]))
    widths = {"trainer": 1, "evaluator": counts["tensor_parallel"]}
    assert all(len(unit.devices) == widths.get(unit.role, counts["tensor_parallel"]) for unit in units)
    trainers = [unit.node for unit in units if unit.role == "trainer"]
    assert trainers == sorted(trainers)
    others = [unit.node for unit in units if unit.role in ("generator", "evaluator")]
    assert trainers[-1] <= min(others)
    assert units[0] == PlacedUnit(role="trainer", index=0, node=0, devices=(0,))
    assert len({unit.name for unit in units}) == len(units)
    assert place(nodes, **counts) == units


@settings(max_examples=300, deadline=None)
@given(NODES, st.integers(1, 20), st.integers(1, 30), TENSOR_PARALLEL, st.booleans())
def test_whatever_is_asked_for_is_placed_whole_or_refused_with_a_reason(nodes, trainers, generators, width, evaluator):
    needed = trainers + width * (generators + evaluator)
    try:
        units = place(nodes, trainers=trainers, generators=generators, tensor_parallel=width, evaluator=evaluator)
    except ValueError as error:
        said = str(error)
        if "would have no work" in said:
            assert needed < sum(nodes)
            count = int(re.match(r"(\d+) device", said)[1])
            assert count == sum(nodes) - needed
            if more := re.search(r"; generators: (\d+) would use them", said):  # then they leave none idle
                place(nodes, trainers=trainers, generators=int(more[1]), tensor_parallel=width, evaluator=evaluator)
        elif "trainers need one device" in said:
            assert trainers > sum(nodes)
        else:
            assert re.search(rf"do not fit beside {trainers} trainers?: \d+ of {generators + evaluator} do", said)
            # By counting: the trainers fill the first nodes, and every node left holds whole groups only.
            left, whole = trainers, 0
            for devices in nodes:
                ours = min(devices, left)
                left, whole = left - ours, whole + (devices - ours) // width
            assert whole < generators + evaluator
    else:
        assert needed == sum(nodes) == sum(len(unit.devices) for unit in units)


def test_one_small_cluster_by_hand():
    units = place([3, 4], trainers=1, generators=2, tensor_parallel=2, evaluator=True)
    assert [(unit.name, unit.node, unit.devices) for unit in units] == [
        ("trainer 0", 0, (0,)),
        ("evaluator", 0, (1, 2)),
        ("generator 0", 1, (0, 1)),
        ("generator 1", 1, (2, 3)),
    ]


@pytest.mark.parametrize(
    ("nodes", "counts", "message"),
    [
        (
            [8, 8],
            {"trainers": 4, "generators": 5, "tensor_parallel": 2},
            "2 devices would have no work (node 1: 6, 7) but cost as much; generators: 6 would use them, or ask for "
            "fewer devices",
        ),
        (
            [4, 3],
            {"trainers": 4, "generators": 1, "tensor_parallel": 2},
            "1 device would have no work (node 1: 2) but cost as much; a generator takes 2 devices of one node, or "
            "ask for fewer devices",
        ),
        (
            [4],
            {"trainers": 2, "generators": 3, "evaluator": True},
            "3 generators and an evaluator with 1 device each, on one node, do not fit beside 2 trainers: 2 of 4 do; "
            "the trainers leave 2 devices (2 on node 0)",
        ),
        (
            [2, 2],
            {"trainers": 1, "generators": 1, "tensor_parallel": 3},
            "1 generator with 3 devices each, on one node, do not fit beside 1 trainer: 0 of 1 do; the trainers "
            "leave 3 devices (1 on node 0, 2 on node 1)",
        ),
        (
            [2, 1],
            {"trainers": 4, "generators": 1},
            "4 trainers need one device each; the nodes have 3 devices (2 on node 0, 1 on node 1)",
        ),
        (
            [2, 0],
            {"trainers": 1, "generators": 1},
            "every node needs a device; found [2, 0] devices by node",
        ),
        ([], {"trainers": 1, "generators": 1}, "every node needs a device; found [] devices by node"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(nodes, counts, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        place(nodes, **counts)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 12), st.integers(1, 32), st.integers(1, 64), TENSOR_PARALLEL)
def test_units_without_fixed_devices_are_shared_out_evenly_and_every_node_has_one(nodes, trainers, generators, width):
    assume(trainers + generators >= nodes)
    counts = {"trainers": trainers, "generators": generators, "tensor_parallel": width}
    devices = split(nodes, **counts)
    units = place(devices, **counts)
    assert Counter(unit.role for unit in units) == {"trainer": trainers, "generator": generators}
    assert {unit.node for unit in units} == set(range(nodes))
    if width == 1:
        assert max(devices) - min(devices) <= 1


def test_ten_units_on_four_nodes_by_hand_and_fewer_units_than_nodes_are_refused():
    assert split(4, trainers=2, generators=4, tensor_parallel=2) == (2, 2, 2, 4)
    assert split(4, trainers=2, generators=2) == (1, 1, 1, 1)
    with pytest.raises(ValueError, match="2 trainers and generators cannot occupy 3 nodes"):
        split(3, trainers=1, generators=1)


def test_a_run_has_its_units_on_the_gpus_of_its_nodes_or_on_cpus():
    cluster = {"type": "wall", "generators": 3, "slots": 12, "evaluator": True}
    recipe = ResolvedRecipe.model_validate(tiny_recipe().model_dump() | {"cluster": cluster})
    on_gpus = place_run(recipe, [3, 2])
    assert [(unit.name, unit.node, unit.devices) for unit in on_gpus] == [
        ("trainer 0", 0, (0,)),
        ("evaluator", 0, (1,)),
        ("generator 0", 0, (2,)),
        ("generator 1", 1, (0,)),
        ("generator 2", 1, (1,)),
    ]
    assert place_run(recipe, [0, 0]) == on_gpus
    with pytest.raises(ValueError, match="1 device would have no work"):
        place_run(recipe, [3, 3])
