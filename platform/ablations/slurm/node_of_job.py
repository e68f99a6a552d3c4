"""The node of a job on which a task runs, from Slurm's variables; no other file reads them."""

from collections.abc import Mapping

from scalerl.cluster.node_of_run import NodeOfRun


def node_of_job(variables: Mapping[str, str]) -> NodeOfRun:
    """The node of this task; Slurm starts one task on each node of the job.

    SLURM_LAUNCH_NODE_IPADDR is the first node, where srun was started, as seen from this node. The name of the node is
    Slurm's own, because several may share a host. The nodes of a requeued job meet anew.
    """
    address = variables.get("SLURM_LAUNCH_NODE_IPADDR")
    return NodeOfRun(
        node=int(variables["SLURM_NODEID"]),
        nodes=int(variables["SLURM_NNODES"]),
        allocation=f"{variables['SLURM_JOB_ID']}.{variables.get('SLURM_RESTART_COUNT', '0')}",
        name=variables["SLURMD_NODENAME"],
        hosts=(address,) if address else (),
    )
