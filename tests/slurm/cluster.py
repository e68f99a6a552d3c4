"""A real Slurm of one node or several: munged, slurmctld and slurmds of its own, on free ports, in a folder of its own.

    with SlurmCluster(folder) as cluster:
        subprocess.run(["sinfo"], env=cluster.environment)

With `nodes` above 1 each has its slurmd, all on this host: n1, n2, ... Only SLURMD_NODENAME tells them apart.
Two partitions share the nodes: `low`, whose jobs are requeued when `high` wants their place. `accounting` adds slurmdbd
and MariaDB, and `sacct` works. Nothing outside the folder is touched and only what was started is stopped.
No daemon or job outlives the process that started the cluster, even when that is killed (`reaper`).
Requeued jobs may start after seconds instead of the usual two minutes (`cred_expire`).
The daemons run as root, as Slurm's Debian packages (`slurm-wlm munge slurmdbd mariadb-server`) expect.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ports import free_ports
from reaper import start_reaper

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo")
NEEDED_FOR_ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacct", "sacctmgr")
START_LIMIT_S = 120.0
"""Seconds that a daemon may take on a busy machine; a cluster takes two alone."""
CPUS = 4
"""More than the machine has: jobs of the tests mostly wait."""
MEMORY_MB = 8000

SLURM_CONF = """\
ClusterName=ablations
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=1000
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0,bf_interval=1,defer_batch
MinJobAge=60
SlurmdTimeout=10
KillWait=3
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MaxArraySize={max_array_size}
MaxJobCount=20000
MpiDefault=none
{accounting}
{node_lines}
PartitionName=low Nodes={names} Default=YES DefaultTime=60 MaxTime=120 PriorityTier=1 GraceTime=5 State=UP
PartitionName=high Nodes={names} DefaultTime=10 MaxTime=60 PriorityTier=10 PreemptMode=OFF State=UP
"""

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database_port}
AccountingStoragePass={folder}/munge/socket"""

NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"

SLURMDBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={database_port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


def missing(*, accounting: bool = False) -> list[str]:
    """Programs that are not installed."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    needed = NEEDED + (NEEDED_FOR_ACCOUNTING if accounting else ())
    return [name for name in needed if shutil.which(name, path=path) is None]


@dataclass(kw_only=True)
class SlurmCluster:
    """One node of `CPUS` processors; `environment` is what a Slurm command needs to find it."""

    folder: Path
    accounting: bool = False
    max_array_size: int = 1001
    nodes: int = 1
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _reaper: subprocess.Popen[bytes] | None = None

    @property
    def node_names(self) -> list[str]:
        """Of the nodes, in Slurm's words."""
        if self.nodes == 1:
            return [socket.gethostname().partition(".")[0]]
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    @property
    def environment(self) -> dict[str, str]:
        """That of this process, without the variables of a job it may itself run in."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
        path = own.get("PATH", "") + os.pathsep + "/usr/sbin"
        return own | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def __enter__(self) -> "SlurmCluster":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Write the configuration and start all daemons; returns when the node takes jobs."""
        self._configure()
        self._reaper = start_reaper(f"SLURM_CONF={self.folder / 'slurm.conf'}")
        self._spawn(
            "munged",
            "--foreground",
            "--force",
            f"--socket={self.folder}/munge/socket",
            *(f"--{name}-file={self.folder}/munge/{name}" for name in ("key", "pid", "log", "seed")),
        )
        self._until(lambda: (self.folder / "munge" / "socket").exists(), "munged has no socket")
        if self.accounting:
            self._start_database()
        self.start_controller()
        for name in self.node_names:
            self.start_node(name)
        self._until(lambda: self.run("sinfo", "-h", "-o", "%T").stdout.strip() == "idle", "the node is not idle")

    def stop(self) -> None:
        """End the jobs and the daemons, the last one started first."""
        if "slurmctld" in self._processes:
            self.run("scancel", "--user=root", "--signal=KILL", "--full", check=False)
        for name in reversed(list(self._processes)):
            self._end(name, signal.SIGTERM)
        if self._reaper is not None:  # kills what jobs left: they outlive their daemons
            self._reaper.communicate()
            self._reaper = None

    def run(self, *command: str, check: bool = True, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """A command that talks to this cluster, and what it printed."""
        try:
            return subprocess.run(
                command, env=self.environment, check=check, timeout=timeout_s, capture_output=True, text=True
            )
        except subprocess.CalledProcessError as error:
            error.add_note(error.stderr)  # which its message leaves out
            raise

    def cancel_all(self) -> None:
        """End every job; returns when none is left."""
        self.run("scancel", "--user=root", "--signal=KILL", "--full", check=False)
        self.run("scancel", "--user=root", check=False)
        self._until(lambda: not self.run("squeue", "-h").stdout, "jobs do not end")

    def start_controller(self, *, forget: bool = False) -> None:
        """Start slurmctld; `forget` throws its state away first, so that job ids begin again."""
        if forget:
            shutil.rmtree(self.folder / "state")
            (self.folder / "state").mkdir()
        self._spawn("slurmctld", "-D", "-i")
        self._until(lambda: self.run("scontrol", "ping", check=False).returncode == 0, "slurmctld does not answer")

    def kill_controller(self) -> None:
        """kill -9 of slurmctld."""
        self._end("slurmctld", signal.SIGKILL)

    def start_node(self, name: str = "") -> None:
        """Start the slurmd of a node, the only one unless named."""
        name = name or self.node_names[0]
        (self.folder / "spool" / name).mkdir(exist_ok=True)
        self._spawn("slurmd", "-D", "-N", name, own_name=f"slurmd {name}")

    def kill_node(self, name: str = "") -> None:
        """kill -9 of a slurmd; the jobs' own processes live on until it comes back."""
        self._end(f"slurmd {name or self.node_names[0]}", signal.SIGKILL)

    def _configure(self) -> None:
        for name in ("munge", "state", "spool", "log"):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)  # munged refuses a path that others could write to
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        controller_port, database_port, storage_port, *node_ports = free_ports(3 + self.nodes)
        host = socket.gethostname().partition(".")[0]
        lines = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} RealMemory={MEMORY_MB} "
            "State=UNKNOWN"
            for name, port in zip(self.node_names, node_ports, strict=True)
        ]
        values = {
            "folder": self.folder,
            "host": host,
            "controller_port": controller_port,
            "node_lines": "\n".join(lines),
            "names": ",".join(self.node_names),
            "database_port": database_port,
            "storage_port": storage_port,
            "max_array_size": self.max_array_size,
        }
        self._storage_port = storage_port
        values["accounting"] = ACCOUNTING.format(**values) if self.accounting else NO_ACCOUNTING
        (self.folder / "slurm.conf").write_text(SLURM_CONF.format(**values))
        database = self.folder / "slurmdbd.conf"
        database.write_text(SLURMDBD_CONF.format(**values))
        database.chmod(0o600)

    def _start_database(self) -> None:
        data = self.folder / "mariadb"
        sockets = f"--socket={self.folder}/mariadb.sock"
        install = ("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-test-db")
        self.run(*install, "--auth-root-authentication-method=normal")
        self._spawn(
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", sockets,
            "--bind-address=127.0.0.1", f"--port={self._storage_port}", f"--pid-file={self.folder}/mariadb.pid",
            "--innodb-buffer-pool-size=64M", "--innodb-lock-wait-timeout=900", "--skip-log-bin",
        )  # fmt: skip
        client = ("mariadb", "--no-defaults", sockets, "--user=root", "--execute")
        self._until(lambda: self.run(*client, "select 1", check=False).returncode == 0, "MariaDB does not answer")
        self.run(*client, "create user slurm@'127.0.0.1' identified by 'slurm'; grant all on slurm_acct_db.* to "
                          "slurm@'127.0.0.1'; create user slurm@localhost identified by 'slurm'; grant all on "
                          "slurm_acct_db.* to slurm@localhost")  # fmt: skip
        self._spawn("slurmdbd", "-D")
        self._until(
            lambda: self.run("sacctmgr", "-i", "add", "cluster", "ablations", check=False).returncode == 0,
            "slurmdbd does not answer",
        )

    def _spawn(self, name: str, *arguments: str, own_name: str = "") -> None:
        """Start a daemon, known by `own_name` if there are several of it."""
        log = (self.folder / "log" / f"{own_name or name}.out").open("ab")
        # A session of its own: Ctrl-C at a terminal is not for the daemons.
        self._processes[own_name or name] = subprocess.Popen(
            [name, *arguments],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()

    def _end(self, name: str, number: signal.Signals) -> None:
        process = self._processes.pop(name)
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _until(self, done: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while not done():
            dead = [name for name, process in self._processes.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                tails = "\n".join(f"{path.name}: {path.read_text()[-600:]}" for path in (self.folder / "log").iterdir())
                raise RuntimeError(f"{problem}; ended: {dead}\n{tails}")
            time.sleep(0.1)
