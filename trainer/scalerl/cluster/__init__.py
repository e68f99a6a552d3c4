"""Generators and a trainer together. A map of the room:

cluster          the parts common to both clocks
virtual_cluster  a cluster simulated by one process with modelled time
device_seconds   accounts of device-seconds by role and activity
engine_agreement  check that another engine's generator agrees with the learner
placement        assignment of devices and nodes to processes; the node that a process is on, and its last known state
peak_rate        measured peak rate of a device on the wall clock
cost             cost of work on the modelled device
step_time        duration of an optimiser step by this cost model
"""
