"""The wall clock: generators and the trainer as processes of this machine, time and idle time measured.

time_sheet          how a process spends its time, by itself and as it reports
accounts            the clock, and the accounts of all devices
messages            what the coordinator and a generator process say to each other
units               the processes of a run and their devices
launch              where they are started: on this machine
generator_process   what a generator process executes
line                the line to the process of one unit
fleet               the lines to all generators: start, talk, notice a death, start again, end
member              what the coordinator knows of one generator
crew                of all of them: who is at work, who has which groups and weights
process_cluster     the cluster that schedules work with

The coordinator draws prompts, verifies answers, trains, evaluates and writes checkpoints. Generators decode on their
own while it takes a step. `docs/design.md` says what the wall clock promises.
"""

from scalerl.processes.crew import GeneratorDied, WeightsRefused
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import LocalLauncher
from scalerl.processes.process_cluster import WallCluster
from scalerl.processes.units import local_units

__all__ = ["GeneratorDied", "GeneratorWork", "LocalLauncher", "WallCluster", "WeightsRefused", "local_units"]
