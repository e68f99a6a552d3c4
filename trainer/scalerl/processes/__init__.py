"""The wall clock: generators and the trainer as processes of this machine, time and idle time measured.

time_sheet          seconds a process was busy, idle and off
messages            what the trainer's process and a generator process say to each other
generator_process   what a generator process executes
fleet               the generator processes as the trainer's process sees them: start, talk, notice a death, end
process_cluster     the cluster that schedules work with

The trainer's process also draws prompts, verifies answers, evaluates and writes checkpoints. Generators decode on their
own while it takes a step. `docs/design.md` says what the wall clock promises.
"""

from scalerl.processes.fleet import GeneratorDied
from scalerl.processes.process_cluster import WallCluster

__all__ = ["GeneratorDied", "WallCluster"]
