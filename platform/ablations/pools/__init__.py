"""Trains runs: the protocol, and an implementation with processes on this machine. A map of the room:

pool          the protocol for training the runs of a sweep, and its events
local         processes on this machine, through submitit
gpus          the GPUs of this machine, dealt out to runs
job           the code that runs inside a job
code_version  the version of the code that trains a run
"""
