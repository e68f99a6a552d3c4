"""The wall clock: generators and the trainer as processes of this machine, time and idle time measured.

time_sheet          how a process spends its time, by itself and as it reports
messages            what the trainer's process and a generator process say to each other
generator_process   what a generator process executes
launch              where generator processes are started: on this machine
line                the line to one of them
fleet               all of them: start, talk, notice a death, start again, end
member              what the trainer's process knows of one
process_cluster     the cluster that schedules work with

The trainer's process also draws prompts, verifies answers, evaluates and writes checkpoints. Generators decode on their
own while it takes a step. `docs/design.md` says what the wall clock promises.
"""

from scalerl.processes.launch import LocalLauncher
from scalerl.processes.process_cluster import GeneratorDied, WallCluster, WeightsRefused

__all__ = ["GeneratorDied", "LocalLauncher", "WallCluster", "WeightsRefused"]
