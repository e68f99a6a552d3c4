"""The test cluster leaves no process behind."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from places import TESTS
from reaper import marked
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


def test_no_daemon_and_no_job_outlives_a_process_that_is_killed(cluster_folder):
    def commands() -> set[str]:
        names = set()
        for process in marked(f"SLURM_CONF={cluster_folder / 'slurm.conf'}"):
            with suppress(OSError):  # it has ended since
                names.add(Path(f"/proc/{process}/comm").read_text().strip())
        return names

    command = [sys.executable, "-c", START_AND_STAY, str(cluster_folder)]
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as starter:
        try:
            assert starter.stdout is not None
            assert starter.stdout.readline() == "a job runs\n"
            wait_until(lambda: commands() >= DAEMONS | {"sleep"}, "every daemon and the job", limit_s=LIMIT_S)
        finally:
            starter.kill()
    wait_until(lambda: not commands(), "the end of every process", limit_s=LIMIT_S)
