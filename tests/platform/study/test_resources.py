"""The `resources:` block: what it takes, how a sweep's goes over its scale's, and that no run is another by it."""

import math
import re
from pathlib import Path

import pytest
from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import FileError
from ablations.files.source import read_yaml
from ablations.pools.placed import refuse_idle_devices, threads_of_node
from ablations.slurm.commands import Partition
from ablations.slurm.limits import limit_problems, option_problems
from ablations.study.expand import expand
from ablations.study.resolve import checked_scale, load_resolved
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


def test_without_a_block_every_key_has_its_default(tmp_path):
    assert study(tmp_path).resources == Resources()
    assert study(tmp_path).resources.time_min == 60.0


def test_the_sweep_replaces_the_scale_key_by_key_and_option_by_option(tmp_path):
    found = study(
        tmp_path,
        scale="resources: {gpus: 8, time_min: 240, setup: [module load cuda], sbatch: {nice: 100, gpu-bind: none}}\n",
        sweep="resources: {partition: gpu, time_min: 60, sbatch: {nice: 5, comment: mine}}\n",
    ).resources
    assert found == Resources(
        partition="gpu",
        gpus=8,
        time_min=60,
        setup=("module load cuda",),
        sbatch={"nice": 5, "gpu-bind": "none", "comment": "mine"},
    )


def test_a_default_that_the_sweep_writes_out_replaces_the_scale_too(tmp_path):
    found = study(
        tmp_path, scale="resources: {partition: gpu, gpus: 8}\n", sweep="resources: {partition: null, gpus: 0}\n"
    ).resources
    assert (found.partition, found.gpus) == (None, 0)


def test_an_option_is_one_however_it_is_written_and_false_leaves_it_out(tmp_path):
    found = study(
        tmp_path,
        scale="resources: {sbatch: {gpu_bind: none, exclusive: true}}\n",
        sweep="resources: {sbatch: {gpu-bind: closest, exclusive: false}}\n",
    ).resources
    assert found.sbatch == {"gpu-bind": "closest"}


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


def test_a_default_is_said_to_be_where_it_could_be_written(tmp_path):
    path = tmp_path / "sweep.yaml"
    assert str(study(tmp_path).asked.place("time_min")) == f"{path}:1: resources.time_min"
    found = study(tmp_path, sweep="resources: {gpus: 1}\n").asked
    assert str(found.place("time_min")) == f"{path}:5: resources.time_min"


def test_resources_are_no_part_of_a_run(tmp_path):
    ids = [run.id for run in study(tmp_path).runs]
    other = study(tmp_path, scale="resources: {gpus: 8}\n", sweep="resources: {partition: gpu}\n")
    assert [run.id for run in other.runs] == ids
    assert "resources" not in other.reference.recipe.canonical()


def test_a_scale_with_resources_trains_one_run_too(tmp_path):
    study(tmp_path, scale="resources: {gpus: 8}\n")
    recipe = load_resolved("scalerl", str(tmp_path / "scale.yaml"))
    assert recipe == load_resolved("scalerl", "smoke")
    assert checked_scale(read_yaml(tmp_path / "scale.yaml")).resources.gpus == 8


def test_one_message_has_the_problems_of_the_scale_and_of_its_resources(tmp_path):
    with pytest.raises(FileError) as caught:
        study(tmp_path, scale="thread: 1\nresources: {gpuss: 8}\n")
    assert [problem.place.key for problem in caught.value.problems] == ["resources.gpuss", "thread"]


def test_resources_on_the_command_line_are_told_where_they_belong(tmp_path):
    result = CliRunner().invoke(
        app, ["train", "scalerl", "--scale", "smoke", "--set", "resources.gpus=8", "--home", str(tmp_path)]
    )
    assert isinstance(result.exception, FileError)
    assert "--set resources.gpus=8: resources are not part of a recipe; write `resources:`" in str(result.exception)


@pytest.mark.parametrize(
    ("written", "time_min"),
    [
        ("90", 90),
        ("7.5", 7.5),
        ('"90"', 90),
        ("30:30", 30.5),
        ("2:00:00", 120),
        ("1-00:00:00", 1440),
        ("1-12", 2160),
        ("1-12:30", 2190),
    ],
)
def test_a_time_is_minutes_or_what_slurm_writes(written, time_min, tmp_path):
    assert asked(tmp_path, f"{{time_min: {written}}}").resources.time_min == time_min


@pytest.mark.parametrize("written", ["4h", "1:2:3:4", "-5:00", "infinite", '""', "1-", "'٣'"])
def test_other_times_are_refused(written, tmp_path):
    with pytest.raises(FileError, match=r"resources\.time_min: found .*; must be a number of minutes or a time"):
        asked(tmp_path, f"{{time_min: {written}}}")


@pytest.mark.parametrize(("written", "num"), [("0", 0), ("8", 8), ("h100:8", 8), ("a100-80g:4", 4)])
def test_gpus_are_a_number_or_a_kind_and_a_number(written, num, tmp_path):
    assert asked(tmp_path, f"{{gpus: {written}}}").resources.num_gpus == num


@pytest.mark.parametrize("written", ["-1", "1.5", "true", "h100", "h100:0", "':8'", "gpu:h100:8", "[8]"])
def test_other_gpus_are_refused(written, tmp_path):
    with pytest.raises(FileError, match=r"resources\.gpus: found .*; must be a number of GPUs, or a kind and a number"):
        asked(tmp_path, f"{{gpus: {written}}}")


@pytest.mark.parametrize("written", ["--nice", "nice=5", "N", "a b", "''"])
def test_options_are_named_alone(written, tmp_path):
    with pytest.raises(FileError, match=r"is not a long option of sbatch; write only its name"):
        asked(tmp_path, f"{{sbatch: {{{written}: 100}}}}")


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


def refusal(folder: Path, block: str, *partitions: Partition) -> list[str]:
    """What is wrong with a block, without where."""
    problems = limit_problems(asked(folder, block), partitions, threads=2)
    start = f"{folder / 'sweep.yaml'}:5: resources."
    assert all(str(problem).startswith(start) for problem in problems)
    return [str(problem).removeprefix(start) for problem in problems]


def test_what_a_partition_has_is_not_refused(tmp_path):
    block = "{partition: gpu, time_min: 2-00:00:00, gpus: 8, cpus: 64, mem_gb: 500, nodes: 9}"
    assert limit_problems(asked(tmp_path, block), [LOW, GPU], threads=1) == []
    assert limit_problems(asked(tmp_path, "{partition: long, time_min: 1000-00}"), [LOW, LONG], threads=1) == []
    assert limit_problems(asked(tmp_path, "{}"), [LOW, GPU], threads=1) == []


def test_an_unknown_partition_is_refused_with_the_valid_ones(tmp_path):
    found = refusal(tmp_path, "{partition: 'low,gpuu'}", LOW, GPU)
    assert found == ["partition: unknown partition 'gpuu'; did you mean 'gpu'? partitions are: low, gpu"]


def test_a_cluster_without_a_default_partition_wants_one_named(tmp_path):
    found = refusal(tmp_path, "{}", GPU, LONG)
    assert found == ["partition: this cluster has no default partition; choose one of: gpu, long"]


def test_a_time_above_the_limit_says_that_a_shorter_one_is_enough(tmp_path):
    assert refusal(tmp_path, "{time_min: 4:00:00}", LOW, GPU, LONG) == [
        "time_min: found 4 h, partition low allows 2 h; write 120 or less: a run that needs longer saves a "
        "checkpoint, is requeued and resumes; partitions with enough: gpu, long"
    ]


def test_a_default_above_a_limit_says_that_it_is_one(tmp_path):
    short = Partition(name="short", is_default=True, time_limit_min=10.0, cpus=1, memory_mb=2000, gpus=0, nodes=1)
    time, cpus, memory = refusal(tmp_path, "{nodes: 1}", short)
    assert time.startswith("time_min: found 1 h by default, partition short allows 10 min; write 10 or less: ")
    assert cpus == "cpus: found 2 processors per node, the scale's threads; the largest node of partition short has 1"
    assert memory == "mem_gb: found 4 GB per node by default; the largest node of partition short has 1.9 GB"


def test_more_than_the_largest_node_has_is_refused_with_both_numbers(tmp_path):
    assert refusal(tmp_path, "{nodes: 2, gpus: h100:8, cpus: 64, mem_gb: 200}", LOW, GPU, LONG) == [
        "nodes: found 2 nodes; partition low has 1; partitions with enough: gpu, long",
        "gpus: found 8 GPUs per node; the largest node of partition low has 0; partitions with enough: gpu",
        "cpus: found 64 processors per node; the largest node of partition low has 4; partitions with enough: gpu",
        "mem_gb: found 200 GB per node; the largest node of partition low has 7.8 GB; partitions with enough: gpu",
    ]


def test_of_several_partitions_one_must_have_enough(tmp_path):
    assert limit_problems(asked(tmp_path, "{partition: 'low,gpu', gpus: 8}"), [LOW, GPU], threads=1) == []
    (found,) = refusal(tmp_path, "{partition: 'low,long', gpus: 1}", LOW, GPU, LONG)
    assert (
        found
        == "gpus: found 1 GPU per node; the largest node of partitions low,long has 0; partitions with enough: gpu"
    )


def test_the_page_of_formats_has_every_key_of_the_block():
    page = (REPOSITORY / "docs/formats.md").read_text()
    (section,) = re.findall(r"^## `resources:`(.*?)(?=^## )", page, flags=re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (\w+(?:, \w+)*) \|", section, flags=re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")} - {"key"}
    assert named == set(Resources.model_fields)


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("{gpus: h100:8}", "gpus: found h100:8; runs train on the CPU"),
        ("{nodes: 2}", "nodes: found 2; one process simulates all devices of a virtual cluster"),
    ],
)
def test_what_no_run_would_use_is_refused(block, found, tmp_path):
    recipe = ResolvedRecipe.model_validate({"device": "cpu"})
    with pytest.raises(FileError) as caught:
        refuse_idle_devices(asked(tmp_path, block), recipe)
    (problem,) = caught.value.problems
    assert f"resources.{found}" in str(problem)
    refuse_idle_devices(asked(tmp_path, "{cpus: 64}"), recipe)


WALL = {"cluster": {"type": "wall", "generators": 3, "generator_threads": 2}, "threads": 4}
"""A trainer and three generators."""


@pytest.mark.parametrize(
    ("device", "block", "why"),
    [
        ("cpu", "{nodes: 4}", ""),
        ("cpu", "{nodes: 5}", "nodes: found 5; 4 trainers and generators cannot occupy 5 nodes"),
        ("cuda", "{nodes: 2, gpus: 2}", ""),
        ("cuda", "{nodes: 4, gpus: 1}", ""),
        ("cuda", "{nodes: 2, gpus: 1}", "nodes: found 2; 3 generators with 1 device each, on one node, do not fit"),
        ("cuda", "{nodes: 2, gpus: 4}", "gpus: found 4 on each of 2 nodes; a run uses 4 GPUs"),
    ],
)
def test_a_run_on_the_wall_clock_may_have_several_nodes_if_it_has_processes_for_them(device, block, why, tmp_path):
    recipe = ResolvedRecipe.model_validate({"device": device} | WALL)
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
        ({"learner": {"type": "fsdp", "ranks": 4}}, 4),
        ({"generator": {"type": "vllm", "tensor_parallel": 2}}, 2),
        ({"cluster": {"type": "wall", "generators": 3}}, 4),
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
