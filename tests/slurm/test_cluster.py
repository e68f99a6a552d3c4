"""The test cluster is a real Slurm: it runs, preempts, accounts, forgets, and leaves no process behind."""

import os
import time
from pathlib import Path

from slurm.cluster import free_ports

LIMIT_S = 60.0


def until(done):
    deadline = time.monotonic() + LIMIT_S
    while not (found := done()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)
    return found


def submit(cluster, script, *options):
    return cluster.run("sbatch", "--parsable", *options, "--wrap", script).stdout.strip()


def state(cluster, job):
    return cluster.run("squeue", "-h", "-j", job, "-o", "%T", check=False).stdout.strip()


def test_a_job_runs_and_its_output_is_where_it_was_asked_for(cluster, tmp_path):
    output = tmp_path / "out"
    submit(cluster, "echo on $SLURM_JOB_PARTITION", "-o", str(output))
    until(lambda: output.exists() and output.read_text() == "on low\n")


def test_the_high_partition_sends_jobs_of_the_low_one_back_to_the_queue(cluster, tmp_path):
    low = submit(cluster, "sleep 60", "--exclusive", "-o", "/dev/null")
    until(lambda: state(cluster, low) == "RUNNING")
    high = submit(cluster, "sleep 5", "-p", "high", "--exclusive", "-o", "/dev/null")
    until(lambda: state(cluster, high) == "RUNNING")
    assert state(cluster, low) in ("PENDING", "COMPLETING")
    cluster.run("scancel", low, high)
    until(lambda: not cluster.run("squeue", "-h").stdout)


def test_accounting_remembers_how_a_job_ended(cluster_with_accounting):
    cluster = cluster_with_accounting
    good, bad = submit(cluster, "true", "-o", "/dev/null"), submit(cluster, "exit 3", "-o", "/dev/null")

    def ends():
        rows = cluster.run("sacct", "-n", "-P", "-X", "-o", "jobid,state,exitcode").stdout.split()
        return {row.split("|")[0]: row.split("|")[1:] for row in rows}

    until(lambda: ends().get(bad) == ["FAILED", "3:0"] and ends().get(good) == ["COMPLETED", "0:0"])


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
    until(lambda: "RUNNING" in own_cluster.run("squeue", "-h", "-o", "%T").stdout)
    folder = str(own_cluster.folder)
    assert processes_of(folder)
    own_cluster.stop()
    until(lambda: not processes_of(folder))


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
