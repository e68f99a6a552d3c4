"""Trains runs: the protocol, and an implementation whose runs live as long as their command. A map of the room:

pool            the protocol for training the runs of a sweep, and its events
command_pool    trains runs while the command lives, at a site: this machine, or a Ray cluster
local           the site that is this machine: processes, and its GPUs, dealt out to them
fork_server     the process that forks those processes, with torch and the kernels loaded once
equal_failures  equal failures in a row, after which no more runs start
placed          the processes of a run on each node of its future job
job             the code that runs inside a job
code_version    the version of the code that trains a run
code_snapshot   a copy of that code, which jobs on other machines run
"""
