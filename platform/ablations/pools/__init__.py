"""Where runs train: the protocol, and processes on this machine. A map of the room:

pool          the protocol of what trains runs, and its events
local         processes on this machine, through submitit
job           what happens inside a job
code_version  which code trains a run
"""
