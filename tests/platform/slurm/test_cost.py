"""The plan of a submission: jobs, arrays, device-hours and the longest wait, worked out by hand."""

import pytest

from ablations.slurm.cost import hours_text, submission_plan
from ablations.study.resources import Resources

EIGHT_GPUS = Resources(time_min=240, gpus="h100:8", cpus=64, mem_gb=200, at_once=8)


def plan(num_runs, resources=EIGHT_GPUS, *, threads=1, max_array_size=1001):
    return submission_plan(num_runs, resources, threads=threads, partition="gpu", max_array_size=max_array_size)


def test_gpu_hours_are_runs_times_gpus_times_the_limit():
    found = plan(27)
    assert (found.device, found.num_devices, found.limit_h) == ("GPU", 8, 4.0)
    assert found.device_hours_of_a_job == 32.0
    assert found.device_hours == 864.0


def test_every_node_of_a_run_counts():
    assert plan(3, Resources(time_min=60, gpus=4, nodes=2)).device_hours == 24.0


def test_without_gpus_processors_are_counted_those_of_the_scale_unless_resources_name_some():
    assert plan(9, Resources(), threads=2).device == "processor"
    assert plan(9, Resources(), threads=2).device_hours == 18.0
    assert plan(9, Resources(cpus=4), threads=2).device_hours == 36.0


def test_slurm_counts_whole_minutes():
    assert plan(60, Resources(time_min=0.5)).device_hours == 1.0


@pytest.mark.parametrize(("num_runs", "rounds"), [(1, 1), (8, 1), (9, 2), (27, 4)])
def test_the_longest_wait_is_as_many_limits_as_there_are_rounds(num_runs, rounds):
    assert plan(num_runs).longest_wait_h == 4.0 * rounds


def test_how_long_it_takes_is_unknown_where_only_slurm_decides():
    found = plan(27, Resources(time_min=240))
    assert found.longest_wait_h is None
    assert plan(1, Resources(time_min=240)).longest_wait_h == 4.0
    assert "the end of the last job depends on the queue" in found.text()


@pytest.mark.parametrize(
    ("num_runs", "max_array_size", "num_arrays"),
    [(0, 1001, 0), (1000, 1001, 1), (1001, 1001, 2), (2000, 1001, 2), (3, 0, 3)],
)
def test_arrays_are_chunked_to_what_the_cluster_takes(num_runs, max_array_size, num_arrays):
    assert plan(num_runs, max_array_size=max_array_size).num_arrays == num_arrays


def test_a_plan_is_asked_about_above_the_stated_cost_not_at_it():
    at = Resources(time_min=60, gpus=10, confirm_above_device_hours=100)
    assert not plan(10, at).needs_confirmation
    assert plan(11, at).needs_confirmation
    assert plan(11, at).question() == (
        "at most 110 GPU-hours, above resources.confirm_above_device_hours (100 GPU-hours); submit?"
    )


def test_the_plan_of_many_runs_in_words():
    assert plan(27).lines() == [
        "27 jobs in 1 array on partition gpu, 8 at a time; each: 1 node, 8 GPUs (h100), 64 processors, 200 GB, "
        "at most 4 h",
        "at most 864 GPU-hours; if 8 jobs can always run, the last job ends at most 16 h after the first one starts",
        "a run that needs more than 4 h saves a checkpoint and is requeued, which costs up to 32 GPU-hours more",
    ]


def test_the_plan_of_one_run_in_words():
    assert plan(1, Resources(time_min=30, nodes=2, at_once=8)).lines() == [
        "1 job on partition gpu: 2 nodes with 1 processor, 4 GB each, at most 30 min",
        "at most 1 processor-hour; the job ends at most 30 min after it starts",
        "a run that needs more than 30 min saves a checkpoint and is requeued, which costs up to 1 processor-hour more",
    ]


def test_fewer_runs_than_may_run_at_once_are_one_round():
    lines = plan(3).lines()
    assert "at a time" not in lines[0]
    assert lines[1].endswith("if 3 jobs can always run, the last job ends at most 4 h after the first one starts")


def test_jobs_that_block_whole_nodes_are_said_to_cost_more():
    found = plan(1, Resources(gpus=1, sbatch={"exclusive": True}))
    assert found.lines()[1].startswith(
        "at most 1 GPU-hour, plus the other devices of their nodes, which exclusive jobs block; the job ends"
    )
    assert found.to_json()["is_exclusive"] is True


def test_nothing_to_submit_costs_nothing():
    found = plan(0)
    assert found.text() == "nothing to submit"
    assert (found.device_hours, found.needs_confirmation) == (0.0, False)


def test_the_plan_for_scripts():
    assert plan(27).to_json() == {
        "num_jobs": 27,
        "num_arrays": 1,
        "at_once": 8,
        "partition": "gpu",
        "device": "GPU",
        "num_devices": 8,
        "limit_h": 4.0,
        "is_exclusive": False,
        "device_hours": 864.0,
        "longest_wait_h": 16.0,
        "needs_confirmation": True,
    }


@pytest.mark.parametrize(("hours", "text"), [(0.5, "0.5"), (12.5, "12.5"), (864, "864"), (12800.4, "12,800")])
def test_hours_read_as_people_write_them(hours, text):
    assert hours_text(hours) == text
