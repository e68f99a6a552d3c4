"""Where runs train: the protocol, and processes of this machine. A map of the room:

pool          what trains runs; where and how many at a time
local         processes of this machine, through submitit
job           what happens inside one
code_version  with which code
"""
