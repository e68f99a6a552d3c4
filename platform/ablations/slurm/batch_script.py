"""The head of a batch script: sbatch options, and the lines before the run."""

import shlex
from collections.abc import Sequence
from typing import Any

from ablations.home.home import Home
from ablations.pools.job import THREAD_VARIABLES
from ablations.slurm.hold import trap_lines
from ablations.slurm.requeue import signal_before_limit_s
from ablations.slurm.submissions import Submission
from ablations.study.resources import Resources

SEVERAL_NODES = ("--wait=0", "--kill-on-bad-exit=0", "--no-kill")
"""srun options for several nodes: a node or agent that ends early does not end the others, since the first node decides
when the run ends."""


def parameters(
    home: Home, submission: Submission, asked: Resources, *, threads: int, hold: bool, after: Sequence[str]
) -> dict[str, Any]:
    """The parameters of a submission, for submitit.

    `threads` is the number of processors of a run if its resources name none; the jobs start after those in `after`
    have ended.
    """
    cpus = asked.cpus or threads
    found = {
        "job_name": submission.name,
        "time": asked.limit_min,
        "nodes": asked.nodes,
        "ntasks_per_node": 1,
        "cpus_per_task": cpus,
        "gpus_per_node": asked.gpus or None,
        "mem": f"{asked.mem_mb}MB",
        "partition": asked.partition,
        "account": asked.account,
        "qos": asked.qos,
        "constraint": asked.constraint,
        "dependency": ",".join(f"afterany:{job}" for job in after) or None,
        "array_parallelism": asked.at_once or len(submission.runs),
        "signal_delay_s": signal_before_limit_s(asked.limit_min),
        "setup": setup_lines(home, submission, asked, cpus),
        "srun_args": list(SEVERAL_NODES) if asked.nodes > 1 else None,
        "additional_parameters": {
            "requeue": True,
            **({"no_kill": True} if asked.nodes > 1 else {}),
            **asked.sbatch,
            **({"hold": True} if hold else {}),
        },
    }
    # submitit sets a wckey by default, which a cluster that checks wckeys rejects.
    return {name: value for name, value in found.items() if value is not None} | {"wckey": None}


def setup_lines(home: Home, submission: Submission, asked: Resources, cpus: int) -> list[str]:
    """Lines before the run: the hold's trap, the number of threads, the user's own lines, the path of the code."""
    return [
        *trap_lines(home, submission),
        f"export {' '.join(f'{name}={cpus}' for name in THREAD_VARIABLES)}",
        *asked.setup,
        # Last, because a module that sets PYTHONPATH must not hide the snapshot.
        f'export PYTHONPATH={shlex.quote(submission.snapshot)}"${{PYTHONPATH:+:$PYTHONPATH}}"',
    ]
