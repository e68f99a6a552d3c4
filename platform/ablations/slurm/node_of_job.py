"""Which of a job's nodes this is, from what Slurm tells its tasks; no other file reads that."""

from collections.abc import Mapping

from scalerl.cluster.node_of_run import NodeOfRun


def node_of_job(variables: Mapping[str, str]) -> NodeOfRun:
    """The node of this task, one of which Slurm starts on each node of the job.

    SLURM_LAUNCH_NODE_IPADDR is where srun was started, the first node, as seen from this one. The name of the node is
    Slurm's own: several may share a host. A job that is sent back to the queue meets anew.
    """
    address = variables.get("SLURM_LAUNCH_NODE_IPADDR")
    return NodeOfRun(
        node=int(variables["SLURM_NODEID"]),
        nodes=int(variables["SLURM_NNODES"]),
        allocation=f"{variables['SLURM_JOB_ID']}.{variables.get('SLURM_RESTART_COUNT', '0')}",
        name=variables["SLURMD_NODENAME"],
        hosts=(address,) if address else (),
    )
