"""Every sharded engine trains as the one of a single process does.

One start of two ranks serves the tests of the suite; the rest, more recipes and numbers of ranks and offloading, is
marked `engines`.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from trainer.rank_processes import run_ranks

PROGRAM = Path(__file__).with_name("rank_program.py")
KINDS = ["zero2", "zero3", "fsdp"]
CLOSE = 1e-5
"""Between FP32 sums in another order; the largest that was seen is 2e-6."""


@cache
def found(folder, world, kinds, cases):
    """What `world` ranks of the program say."""
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed; `make engines` installs it")
    store = folder / f"{world} {kinds} {cases}".replace(" ", "_")
    said = run_ranks(PROGRAM, world, str(store), kinds, cases)
    (line,) = (line for line in said.splitlines() if line.startswith("FOUND "))
    return json.loads(line.removeprefix("FOUND "))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


@pytest.fixture(scope="module")
def two_ranks(folder):
    return found(folder, 2, ",".join(KINDS), "critic")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", ["mixed", "one pass"])
def test_the_gradient_is_that_of_the_whole_batch_also_where_a_rank_has_no_rows(two_ranks, kind, case):
    assert two_ranks[kind]["gradient"][case] < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_weights_are_those_of_one_process(two_ranks, kind):
    steps = two_ranks[kind]["steps"]["critic"]
    assert steps["along"] < CLOSE
    assert steps["weights"] < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_what_one_engine_saves_another_resumes(two_ranks, kind):
    assert two_ranks[kind]["steps"]["critic"]["resumed"] < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_a_nan_on_one_rank_is_skipped_on_all_counted_once_and_forgotten(two_ranks, kind):
    bad = two_ranks[kind]["bad"]
    assert bad["ranks_that_skipped"] == 2
    assert bad["loss"] is None
    assert bad["after"] < CLOSE


@pytest.mark.engines
@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_recipe_on_one_to_three_ranks(folder, world, kind):
    cases = ["plain", "critic", "penalty", "packed", "one pass", "experts", "adapter", "own"]
    seen = found(folder, world, kind, ",".join(cases))[kind]
    assert seen["bad"]["ranks_that_skipped"] == world
    assert max(seen["gradient"].values()) < CLOSE
    assert {case: gaps for case, gaps in seen["steps"].items() if max(gaps.values()) >= CLOSE} == {}


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["zero2 offloaded", "zero3 offloaded"])
def test_moments_in_the_hosts_memory_change_nothing(folder, kind):
    seen = found(folder, 2, kind, "plain,critic")[kind]
    assert seen["bad"]["ranks_that_skipped"] == 2
    assert seen["bad"]["after"] < CLOSE
    assert seen["gradient"]["one pass"] < CLOSE
    assert all(max(gaps.values()) < CLOSE for gaps in seen["steps"].values())
