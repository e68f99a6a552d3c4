"""Generators and a trainer together. A map of the room:

cluster               what is between them, whatever the clock
virtual_cluster       played by one process, time modelled
device_seconds        where the hours go: device-seconds by role and activity
probe                 whether a generator of another engine computes what the learner computes
placement             which process has which devices of which node
node_of_run           which of the nodes a process is on
unit_state            what one of them was last known to do
peak_rate             what a device of the wall clock could do at most
cost                  what work costs on the modelled device
step_time             how long an optimiser step would take by it
free_attention_clock  what the same work would have cost had attention been free
"""
