"""The `resources:` block: what it takes, how a sweep's goes over its scale's, and that no run is another by it."""

import math
import re
from pathlib import Path

import pytest
from places import REPOSITORY

from ablations.errors import FileError
from ablations.pools.placed import refuse_idle_devices, threads_of_node
from ablations.slurm.commands import Partition
from ablations.slurm.limits import limit_problems, option_problems
from ablations.study.expand import expand
from ablations.study.resources import Resources
from scalerl.recipe import ResolvedRecipe

SMOKE = (REPOSITORY / "recipes/scales/smoke.yaml").read_text().partition("resources:")[0]
SMOKE_LINES = SMOKE.count("\n")
"""Lines of the scale that the tests below write a block under."""
LOW = Partition(name="low", is_default=True, time_limit_min=120.0, cpus=4, memory_mb=8000, gpus=0, nodes=1)
GPU = Partition(name="gpu", is_default=False, time_limit_min=2880.0, cpus=64, memory_mb=512000, gpus=8, nodes=9)
LONG = Partition(name="long", is_default=False, time_limit_min=math.inf, cpus=4, memory_mb=8000, gpus=0, nodes=2)


def study(folder: Path, *, sweep: str = "", scale: str = ""):
    """A study whose sweep and scale files have these lines at their ends."""
    (folder / "scale.yaml").write_text(SMOKE + scale)
    path = folder / "sweep.yaml"
    path.write_text("name: test\nreference: scalerl\nscale: scale.yaml\naxes: {logits: [bf16]}\n" + sweep)
    return expand(path)


def asked(folder: Path, block: str):
    return study(folder, sweep=f"resources: {block}\n").asked


def test_the_sweep_replaces_the_scale_key_by_key_and_option_by_option(tmp_path):
    found = study(
        tmp_path,
        scale="resources: {partition: gpu, gpus: 8, setup: [module load cuda], sbatch: {nice: 100, gpu_bind: none, "
        "exclusive: true}}\n",
        sweep="resources: {partition: null, time_min: 90, sbatch: {nice: 5, gpu-bind: closest, exclusive: false}}\n",
    ).resources
    # A key that the sweep sets to its default replaces the scale's, and false leaves an option out.
    assert found == Resources(
        gpus=8, time_min=90, setup=("module load cuda",), sbatch={"nice": 5, "gpu-bind": "closest"}
    )


def test_each_key_is_remembered_where_it_was_written(tmp_path):
    found = study(
        tmp_path,
        scale="resources:\n  gpus: 8\n  sbatch:\n    gpu_bind: none\n",
        sweep="resources:\n  partition: gpu\n  sbatch: {nice: 100}\n",
    ).asked
    sweep, scale = str(tmp_path / "sweep.yaml"), str(tmp_path / "scale.yaml")
    assert str(found.place("partition")) == f"{sweep}:6: resources.partition"
    assert str(found.place("sbatch.nice")) == f"{sweep}:7: resources.sbatch.nice"
    assert str(found.place("gpus")) == f"{scale}:{SMOKE_LINES + 2}: resources.gpus"
    assert str(found.place("sbatch.gpu-bind")) == f"{scale}:{SMOKE_LINES + 4}: resources.sbatch.gpu_bind"


def test_resources_are_no_part_of_a_run(tmp_path):
    ids = [run.id for run in study(tmp_path).runs]
    other = study(tmp_path, scale="resources: {gpus: 8}\n", sweep="resources: {partition: gpu}\n")
    assert [run.id for run in other.runs] == ids
    assert "resources" not in other.reference.recipe.canonical()


@pytest.mark.parametrize(
    ("written", "time_min"),
    [("7.5", 7.5), ('"90"', 90), ("30:30", 30.5), ("2:00:00", 120), ("1-00:00:00", 1440), ("1-12", 2160)],
)
def test_a_time_is_minutes_or_what_slurm_writes(written, time_min, tmp_path):
    assert asked(tmp_path, f"{{time_min: {written}}}").resources.time_min == time_min


@pytest.mark.parametrize(("written", "num"), [("8", 8), ("h100:8", 8), ("a100-80g:4", 4)])
def test_gpus_are_a_number_or_a_kind_and_a_number(written, num, tmp_path):
    assert asked(tmp_path, f"{{gpus: {written}}}").resources.num_gpus == num


NO_TIME = "; must be a number of minutes or a time"
NO_GPUS = "; must be a number of GPUs, or a kind and a number"
NO_OPTION = "is not a long option of sbatch; write only its name"


@pytest.mark.parametrize(
    ("block", "said"),
    [
        *((f"{{time_min: {one}}}", NO_TIME) for one in ("4h", "1:2:3:4", "infinite", '""', "1-", "'٣'")),
        *((f"{{gpus: {one}}}", NO_GPUS) for one in ("-1", "1.5", "true", "h100:0", "gpu:h100:8", "[8]")),
        *((f"{{sbatch: {{{one}: 100}}}}", NO_OPTION) for one in ("--nice", "nice=5", "N", "''")),
    ],
)
def test_other_times_gpus_and_options_are_refused(block, said, tmp_path):
    with pytest.raises(FileError, match=said):
        asked(tmp_path, block)


def test_an_unknown_option_is_refused_with_the_nearest_and_all_valid_ones(tmp_path):
    known = frozenset({f"option-{number}" for number in range(30)} | {"nice", "time", "array", "wait"})
    (problem,) = option_problems(asked(tmp_path, "{sbatch: {nicee: 100, nice: 5}}"), known)
    assert str(problem.place) == f"{tmp_path / 'sweep.yaml'}:5: resources.sbatch.nicee"
    assert problem.found == "unknown option 'nicee'"
    advice = "did you mean 'nice'? options of this cluster's sbatch are: nice, option-0, option-1, option-10"
    assert problem.right.startswith(advice)
    # Neither what has a key of its own, nor what the platform sets, nor what keeps it from its jobs.
    named = problem.right.partition("are: ")[2].split(", ")
    assert len(named) == 31
    assert named[-1] == "option-9"


NODES = "{nodes: 2, gpus: h100:8, cpus: 64, mem_gb: 200}"


@pytest.mark.parametrize(
    ("block", "partitions", "said"),
    [
        ("{partition: gpu, time_min: 2-00:00:00, gpus: 8, cpus: 64, mem_gb: 500, nodes: 9}", (LOW, GPU), []),
        ("{partition: long, time_min: 1000-00}", (LOW, LONG), []),
        ("{partition: 'low,gpu', gpus: 8}", (LOW, GPU), []),  # one of several has enough
        (
            "{partition: 'low,gpuu'}",
            (LOW, GPU),
            ["partition: unknown partition 'gpuu'; did you mean 'gpu'? partitions are: low, gpu"],
        ),
        ("{}", (GPU, LONG), ["partition: this cluster has no default partition; choose one of: gpu, long"]),
        (
            NODES,
            (LOW, GPU, LONG),
            [
                "nodes: found 2 nodes; partition low has 1; partitions with enough: gpu, long",
                "gpus: found 8 GPUs per node; the largest node of partition low has 0; partitions with enough: gpu",
                "cpus: found 64 processors per node; the largest node of partition low has 4; partitions with "
                "enough: gpu",
                "mem_gb: found 200 GB per node; the largest node of partition low has 7.8 GB; partitions with "
                "enough: gpu",
            ],
        ),
        (
            "{nodes: 1}",
            (Partition(name="short", is_default=True, time_limit_min=10, cpus=1, memory_mb=2000, gpus=0, nodes=1),),
            [
                "time_min: found 1 h by default, partition short allows 10 min; write 10 or less: a run that needs "
                "longer saves a checkpoint, is requeued and resumes",
                "cpus: found 2 processors per node, the scale's threads; the largest node of partition short has 1",
                "mem_gb: found 4 GB per node by default; the largest node of partition short has 1.9 GB",
            ],
        ),
    ],
)
def test_what_no_partition_has_is_refused_with_both_numbers_and_what_has_it(block, partitions, said, tmp_path):
    start = f"{tmp_path / 'sweep.yaml'}:5: resources."
    assert list(map(str, limit_problems(asked(tmp_path, block), partitions, threads=2))) == [
        f"{start}{one}" for one in said
    ]


def test_the_page_of_formats_has_every_key_of_the_block():
    page = (REPOSITORY / "docs/formats.md").read_text()
    (section,) = re.findall(r"^## `resources:`(.*?)(?=^## )", page, flags=re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (\w+(?:, \w+)*) \|", section, flags=re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")} - {"key"}
    assert named == set(Resources.model_fields)


WALL = {"cluster": {"type": "wall", "generators": 3, "generator_threads": 2}, "threads": 4}
"""A trainer and three generators."""


@pytest.mark.parametrize(
    ("settings", "block", "why"),
    [
        ({"device": "cpu"}, "{cpus: 64}", ""),
        ({"device": "cpu"}, "{gpus: h100:8}", "gpus: found h100:8; runs train on the CPU"),
        ({"device": "cpu"}, "{nodes: 2}", "nodes: found 2; one process simulates all devices of a virtual cluster"),
        ({"device": "cpu"} | WALL, "{nodes: 4}", ""),
        ({"device": "cpu"} | WALL, "{nodes: 5}", "nodes: found 5; 4 trainers and generators cannot occupy 5 nodes"),
        ({"device": "cuda"} | WALL, "{nodes: 2, gpus: 2}", ""),
        (
            {"device": "cuda"} | WALL,
            "{nodes: 2, gpus: 1}",
            "nodes: found 2; 3 generators with 1 device each, on one node, do not fit",
        ),
        ({"device": "cuda"} | WALL, "{nodes: 2, gpus: 4}", "gpus: found 4 on each of 2 nodes; a run uses 4 GPUs"),
    ],
)
def test_devices_that_no_process_of_a_run_would_use_are_refused(settings, block, why, tmp_path):
    recipe = ResolvedRecipe.model_validate(settings)
    if not why:
        refuse_idle_devices(asked(tmp_path, block), recipe)
        return
    with pytest.raises(FileError) as caught:
        refuse_idle_devices(asked(tmp_path, block), recipe)
    assert f"resources.{why}" in str(caught.value.problems[0])


@pytest.mark.parametrize(("block", "threads"), [("{}", 10), ("{nodes: 2}", 6), ("{nodes: 4}", 4)])
def test_processors_are_asked_for_by_node(block, threads, tmp_path):
    # Two nodes have two processes each: the trainer with 4 threads and a generator with 2, and two generators.
    recipe = ResolvedRecipe.model_validate({"device": "cpu"} | WALL)
    assert threads_of_node(recipe, asked(tmp_path, block).resources) == threads


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({}, 1),
        ({"device": "cpu"}, 0),
        ({"generator": {"type": "vllm", "tensor_parallel": 2}}, 2),
        (
            {
                "cluster": {"type": "wall", "generators": 3},
                "generator": {"type": "vllm", "tensor_parallel": 2},
                "learner": {"type": "fsdp", "ranks": 4},
            },
            10,
        ),
    ],
)
def test_no_more_gpus_are_reserved_than_a_run_uses(settings, most, tmp_path):
    recipe = ResolvedRecipe.model_validate({"device": "cuda"} | settings)
    assert recipe.most_gpus == most
    refuse_idle_devices(asked(tmp_path, f"{{gpus: {most}}}"), recipe)
    with pytest.raises(FileError, match=f"resources.gpus: found {most + 1}; .*; write {most}"):
        refuse_idle_devices(asked(tmp_path, f"{{gpus: {most + 1}}}"), recipe)
