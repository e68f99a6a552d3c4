"""Trains runs on a Ray cluster, which only has to start our processes. A map of the room:

order           what one attempt at a run asks of the cluster, how many runs fit, and what its nodes need to know
ray_site        starts the runs of a sweep on a cluster
driver_process  the command's side of Ray's driver, which is a separate process
driver          the program of that process: the only file that imports Ray
node            starts, watches and ends a run's process on a node, inside a Ray worker
job             the program of that process
doctor          checks whether a cluster can run sweeps

A sweep's command is not Ray's driver, and a run's process is not a Ray worker: Ray ends both from C++, past every
`finally`, when its control service is gone (docs/design.md).
"""
