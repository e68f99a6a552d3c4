"""What is asked of Slurm is held against what the real sbatch and sinfo say of the cluster."""

import pytest
from waiting import wait_until

from ablations.errors import FileError
from ablations.slurm import commands
from ablations.slurm.limits import check_on_cluster
from ablations.study.expand import expand
from ablations.study.resources import OWN_OPTIONS, SLURM_KEYS, UNFIT_OPTIONS

SWEEP = "name: test\nreference: scalerl\nscale: smoke\naxes: {logits: [bf16]}\nresources:\n"


def use(cluster, monkeypatch):
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, cluster.environment[name])


@pytest.fixture
def here(cluster, monkeypatch):
    """This process's Slurm commands ask the test cluster."""
    use(cluster, monkeypatch)
    return cluster


def asked(folder, *lines):
    path = folder / "sweep.yaml"
    path.write_text(SWEEP + "".join(f"  {line}\n" for line in lines))
    return expand(path).asked


def refusal(folder, *lines):
    """What is said of a block, without the path of its file."""
    with pytest.raises(FileError) as caught:
        check_on_cluster(asked(folder, *lines), threads=1)
    return [str(problem).removeprefix(f"{folder / 'sweep.yaml'}:") for problem in caught.value.problems]


@pytest.mark.usefixtures("here")
def test_sbatch_lists_what_the_platform_uses_and_what_it_refuses():
    listed = commands.sbatch_options()
    assert (SLURM_KEYS.keys() | OWN_OPTIONS | UNFIT_OPTIONS) - listed == {"ntasks-per-gpu", "open-mode", "test-only"}
    assert {"nice", "comment", "reservation", "exclusive"} <= listed


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["hint", "acctg-freq", "mem-bind", "kill-on-invalid-dep", "open-mode"])
def test_sbatch_has_options_that_it_does_not_list(name):
    assert name not in commands.sbatch_options()
    assert commands.takes_option(name)


@pytest.mark.parametrize("name", ["nicee", "x11", "gpus-per", "no such"])
def test_asking_for_an_option_that_there_is_not_submits_nothing(here, name):
    assert not commands.takes_option(name)
    assert here.run("squeue", "-h").stdout == ""


@pytest.mark.usefixtures("here")
def test_an_unknown_option_is_refused_with_its_line_and_the_nearest(tmp_path):
    (problem,) = refusal(tmp_path, "partition: low", "sbatch:", "  nicee: 100", "  comment: mine")
    assert problem.startswith("8: resources.sbatch.nicee: unknown option 'nicee'; did you mean 'nice'? options of ")
    assert "reservation" in problem
    assert "parsable" not in problem


@pytest.mark.usefixtures("here")
def test_all_that_the_cluster_does_not_have_is_said_at_once(tmp_path):
    said = refusal(
        tmp_path, "partition: high", "time_min: 2:00:00", "gpus: 1", "cpus: 5", "mem_gb: 8", "sbatch: {partit: 1}"
    )
    assert [line.partition(";")[0] for line in said] == [
        "11: resources.sbatch.partit: unknown option 'partit'",  # the beginning of an option is not taken for it
        "7: resources.time_min: found 2 h, partition high allows 1 h",
        "8: resources.gpus: found 1 GPU per node",
        "9: resources.cpus: found 5 processors per node",
        "10: resources.mem_gb: found 8 GB per node",
    ]
    assert said[1].endswith("write 60 or less: a run that needs longer saves a checkpoint, is requeued and resumes; "
                            "partitions with enough: low")  # fmt: skip
    assert said[-1].endswith("the largest node of partition high has 7.8 GB")


def test_what_passes_is_taken_by_slurm_itself(here, tmp_path):
    found = asked(tmp_path, "time_min: 120", "cpus: 4", "mem_gb: 7.8", "sbatch: {nice: 100, hint: nomultithread}")
    assert check_on_cluster(found, threads=1) == "low"
    resources = found.resources
    sizes = (f"--time={resources.limit_min}", f"--cpus-per-task={resources.cpus}", f"--mem={resources.mem_mb}")
    options = (f"--{name}={value}" for name, value in resources.sbatch.items())
    # Slurm plans no job for a node that still ends another one, or has not registered since the controller began.
    wait_until(lambda: states(here) == {"idle"}, "an idle node", every_s=0.2, shown=lambda: states(here))
    here.run("sbatch", "--test-only", "-p", "low", *sizes, *options, "--wrap", "true")


def states(cluster):
    """The states of the nodes, as Slurm names them."""
    return set(cluster.run("sinfo", "-h", "-N", "-o", "%T").stdout.split())


def test_slurm_itself_would_leave_a_job_above_a_limit_waiting(here):
    # Why limits are checked here at all.
    job = here.run(
        "sbatch", "--parsable", "--time=500", "-p", "low", "-o", "/dev/null", "--wrap", "true"
    ).stdout.strip()
    assert here.run("squeue", "-h", "-j", job, "-o", "%T %r").stdout.startswith("PENDING Partition")
    here.run("scancel", job)


def test_a_quality_of_service_may_lift_the_time_limit(cluster_with_accounting, monkeypatch, tmp_path):
    use(cluster_with_accounting, monkeypatch)
    cluster_with_accounting.run("sacctmgr", "-i", "add", "qos", "long", "flags=PartitionTimeLimit,DenyOnLimit")
    assert commands.qos_flags("long") == {"PartitionTimeLimit", "DenyOnLimit"}
    assert commands.qos_flags("normal") == frozenset()
    assert check_on_cluster(asked(tmp_path, "time_min: 1-0", "qos: long"), threads=1) == "low"
    (problem,) = refusal(tmp_path, "time_min: 1-0", "qos: normal")
    assert problem.startswith("6: resources.time_min: found 24 h, partition low allows 2 h; ")
