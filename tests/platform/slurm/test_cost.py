"""The plan of a submission: jobs, arrays, device-hours and the longest wait, worked out by hand."""

import pytest

from ablations.slurm.cost import SubmissionPlan
from ablations.study.resources import Resources

EIGHT_GPUS = Resources(time_min=240, gpus="h100:8", cpus=64, mem_gb=200, at_once=8)


def plan(num_jobs, resources=EIGHT_GPUS, *, threads=1, max_array_size=1001):
    return SubmissionPlan(
        num_jobs=num_jobs, resources=resources, threads=threads, partition="gpu", max_array_size=max_array_size
    )


@pytest.mark.parametrize(
    ("num_jobs", "resources", "device", "device_hours"),
    [
        (27, EIGHT_GPUS, "GPU", 864.0),
        (3, Resources(time_min=60, gpus=4, nodes=2), "GPU", 24.0),  # every node of a run counts
        (9, Resources(), "processor", 18.0),  # the scale's two
        (9, Resources(cpus=4), "processor", 36.0),
        (60, Resources(time_min=0.5), "processor", 2.0),  # Slurm counts whole minutes
        (0, EIGHT_GPUS, "GPU", 0.0),
    ],
)
def test_device_hours_are_runs_times_devices_times_the_limit(num_jobs, resources, device, device_hours):
    found = plan(num_jobs, resources, threads=2)
    assert (found.device, found.device_hours) == (device, device_hours)


@pytest.mark.parametrize(
    ("num_jobs", "at_once", "end"),
    [
        (3, 8, "if 3 jobs can always run, the last job ends at most 4 h after the first one starts"),
        (8, 8, "if 8 jobs can always run, the last job ends at most 4 h after the first one starts"),
        (9, 8, "if 8 jobs can always run, the last job ends at most 8 h after the first one starts"),
        (27, None, "the end of the last job depends on the queue"),
        (1, None, "the job ends at most 4 h after it starts"),
    ],
)
def test_the_longest_wait_is_as_many_limits_as_there_are_rounds_unless_only_slurm_decides(num_jobs, at_once, end):
    assert plan(num_jobs, Resources(time_min=240, at_once=at_once)).text().splitlines()[1].endswith(f"; {end}")


@pytest.mark.parametrize(
    ("num_jobs", "max_array_size", "arrays"),
    [(1000, 1001, "1 array"), (1001, 1001, "2 arrays"), (2000, 1001, "2 arrays"), (3, 0, "3 arrays")],
)
def test_arrays_are_chunked_to_what_the_cluster_takes(num_jobs, max_array_size, arrays):
    assert f"{num_jobs} jobs in {arrays} on" in plan(num_jobs, max_array_size=max_array_size).text()


def test_a_plan_is_asked_about_above_the_stated_cost_not_at_it():
    at = Resources(time_min=60, gpus=10, confirm_above_device_hours=100)
    assert not plan(10, at).needs_confirmation
    assert plan(11, at).needs_confirmation
    assert plan(11, at).question() == (
        "at most 110 GPU-hours, above resources.confirm_above_device_hours (100 GPU-hours); submit?"
    )


@pytest.mark.parametrize(
    ("num_jobs", "resources", "text"),
    [
        (
            27,
            EIGHT_GPUS,
            "27 jobs in 1 array on partition gpu, 8 at a time; each: 1 node, 8 GPUs (h100), 64 processors, 200 GB, "
            "at most 4 h\n"
            "at most 864 GPU-hours; if 8 jobs can always run, the last job ends at most 16 h after the first one "
            "starts\n"
            "a run that needs more than 4 h saves a checkpoint and is requeued, which costs up to 32 GPU-hours more",
        ),
        (
            1,
            Resources(time_min=30, nodes=2, at_once=8, sbatch={"exclusive": True}),
            "1 job on partition gpu: 2 nodes with 1 processor, 4 GB each, at most 30 min\n"
            "at most 1 processor-hour, plus the other devices of their nodes, which exclusive jobs block; "
            "the job ends at most 30 min after it starts\n"
            "a run that needs more than 30 min saves a checkpoint and is requeued, which costs up to 1 processor-hour "
            "more",
        ),
        (0, EIGHT_GPUS, "nothing to submit"),
    ],
)
def test_the_plan_in_words(num_jobs, resources, text):
    assert plan(num_jobs, resources).text() == text
