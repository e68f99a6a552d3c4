"""The wall clock: generators, trainer and evaluator as processes of one or several nodes, time and idle time measured.

        schedule (scalerl.schedules)
            |  calls
        coordinator, the run's own process: draws prompts, verifies answers, writes checkpoints
            |                               |                               |
            | groups of requests            | groups with rewards           | publication to measure
            | "new weights: number 7"       | "publish as number 7"         |
            V   ^                           V   ^                           V   ^
            |   | finished rollouts         |   | updates, seconds          |   | pass rates, seconds
        generator 0 .. n                trainer rank 0 .. m             evaluator
            ^                               |       |                       ^
            | fetch the newest              | publish, each its share       | fetch the named one
            +-------- weight store <--------+       +--> evaluator's store -+

Orders and answers are messages of `messages`, one line (`line`) to each process. Weights never pass along a line: they
are put into a store (`scalerl.weights`: shared memory on one node, a folder on several) and fetched from there. Without
a sharded learner there are no ranks: the coordinator trains and publishes. Without an evaluator the coordinator
evaluates. On node 0 processes are children of the coordinator; on each other node an agent starts them.

time_sheet          how a process spends its time, by itself and as it reports
accounts            the clock, and the accounts of all devices
messages            what the coordinator and a generator process say to each other
units               the processes of a run and their devices
launch              where they are started: on this machine
agent_launcher      or on several nodes, each of which has an agent
agent               what an agent executes: it starts, watches and ends processes of its node
agent_messages      what it and the coordinator say to each other
coordinator         the agents as the coordinator sees them: who has come, who is gone
meeting_file        how they find it
authenticated       the connections between nodes
started             what a process executes that an agent has started
generator_process   what a generator process executes
line                the line to the process of one unit
fleet               the lines to all generators: start, talk, notice a death, start again, end
member              what the coordinator knows of one generator
crew                of all of them: who is at work, who has which groups and weights
trainer_process     what the process of a trainer rank executes, where the learner is sharded
remote_learner      all ranks, as the coordinator orders them about
evaluator_process   what the evaluator's process executes, where there is one: it measures published weights
evaluator_account   how that process spends its time
remote_evaluator    the evaluator, as the coordinator sees it
process_cluster     the cluster that schedules work with

Generators decode on their own during a step. On the virtual clock only the ranks of a sharded learner are processes.
`docs/design.md` says what the wall clock promises.
"""

from scalerl.processes.agent_launcher import AgentLauncher
from scalerl.processes.coordinator import Coordinator
from scalerl.processes.evaluator_process import EvaluatorWork, Meter
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import LocalLauncher
from scalerl.processes.process_cluster import WallCluster
from scalerl.processes.remote_evaluator import RemoteEvaluator
from scalerl.processes.remote_learner import RemoteLearner
from scalerl.processes.trainer_process import LOCAL, TrainerWork
from scalerl.processes.units import local_units, units_of

__all__ = [
    "LOCAL",
    "AgentLauncher",
    "Coordinator",
    "EvaluatorWork",
    "GeneratorWork",
    "LocalLauncher",
    "Meter",
    "RemoteEvaluator",
    "RemoteLearner",
    "TrainerWork",
    "WallCluster",
    "local_units",
    "units_of",
]
