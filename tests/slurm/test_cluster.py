"""The test cluster is a real Slurm: it runs, preempts, accounts, forgets, and leaves no process behind."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from places import TESTS
from slurm.cluster import free_ports
from slurm.study import LIMIT_S
from waiting import wait_until

DAEMONS = {"munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd"}
START_AND_STAY = """
import sys, time
from pathlib import Path
from slurm.cluster import SlurmCluster
cluster = SlurmCluster(folder=Path(sys.argv[1]), accounting=True)
cluster.start()
cluster.run("sbatch", "--output=/dev/null", "--wrap", "sleep 1000")
while "RUNNING" not in cluster.run("squeue", "--noheader", "--format=%T").stdout:
    time.sleep(0.1)
print("a job runs", flush=True)
time.sleep(1000)
"""


def until(done, what):
    return wait_until(done, what, limit_s=LIMIT_S, every_s=0.2)


def submit(cluster, script, *options):
    return cluster.run("sbatch", "--parsable", *options, "--wrap", script).stdout.strip()


def state(cluster, job):
    return cluster.run("squeue", "-h", "-j", job, "-o", "%T", check=False).stdout.strip()


def test_a_job_runs_and_its_output_is_where_it_was_asked_for(cluster, tmp_path):
    output = tmp_path / "out"
    submit(cluster, "echo on $SLURM_JOB_PARTITION", "-o", str(output))
    until(lambda: output.exists() and output.read_text() == "on low\n", "the output of the job")


def test_the_high_partition_sends_jobs_of_the_low_one_back_to_the_queue(cluster, tmp_path):
    low = submit(cluster, "sleep 60", "--exclusive", "-o", "/dev/null")
    until(lambda: state(cluster, low) == "RUNNING", "the low job to run")
    high = submit(cluster, "sleep 5", "-p", "high", "--exclusive", "-o", "/dev/null")
    until(lambda: state(cluster, high) == "RUNNING", "the high job to run")
    assert state(cluster, low) in ("PENDING", "COMPLETING")
    cluster.run("scancel", low, high)
    until(lambda: not cluster.run("squeue", "-h").stdout, "the end of both jobs")


def test_accounting_remembers_how_a_job_ended(cluster_with_accounting):
    cluster = cluster_with_accounting
    good, bad = submit(cluster, "true", "-o", "/dev/null"), submit(cluster, "exit 3", "-o", "/dev/null")

    def ends():
        rows = cluster.run("sacct", "-n", "-P", "-X", "-o", "jobid,state,exitcode").stdout.split()
        return {row.split("|")[0]: row.split("|")[1:] for row in rows}

    until(
        lambda: ends().get(bad) == ["FAILED", "3:0"] and ends().get(good) == ["COMPLETED", "0:0"],
        "both ends in accounting",
    )


def test_without_accounting_sacct_refuses(cluster):
    assert "disabled" in cluster.run("sacct", check=False).stderr


def test_a_controller_that_forgets_begins_its_job_ids_again(own_cluster):
    assert submit(own_cluster, "true", "-o", "/dev/null") == "1"
    assert submit(own_cluster, "true", "-o", "/dev/null") == "2"
    own_cluster.kill_controller()
    own_cluster.start_controller(forget=True)
    assert submit(own_cluster, "true", "-o", "/dev/null") == "1"


def test_stopping_leaves_no_process(own_cluster):
    submit(own_cluster, "sleep 100", "-o", "/dev/null")
    until(lambda: "RUNNING" in own_cluster.run("squeue", "-h", "-o", "%T").stdout, "the job to run")
    folder = str(own_cluster.folder)
    assert processes_of(folder)
    own_cluster.stop()
    until(lambda: not processes_of(folder), "the end of every process")


def test_no_daemon_and_no_job_outlives_a_process_that_is_killed(cluster_folder):
    command = [sys.executable, "-c", START_AND_STAY, str(cluster_folder)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as starter:
        try:
            assert starter.stdout is not None
            assert starter.stdout.readline() == "a job runs\n"
            until(lambda: commands_of(cluster_folder) >= DAEMONS | {"sleep"}, "every daemon and the job")
        finally:
            starter.kill()
    until(lambda: not processes_of(str(cluster_folder)), "the end of every process")


def commands_of(folder):
    """The names of the commands that the processes of a cluster run."""
    names = set()
    for process in processes_of(str(folder)):
        with suppress(OSError):  # it has ended since
            names.add(Path(f"/proc/{process}/comm").read_text().strip())
    return names


def processes_of(folder):
    """Processes whose environment or command names the cluster's folder; pytest's own is not among them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if folder.encode() in text and int(process.name) != os.getpid():
            found.append(process.name)
    return found


def test_ports_are_free_and_differ():
    ports = free_ports(4)
    assert len(set(ports)) == 4
