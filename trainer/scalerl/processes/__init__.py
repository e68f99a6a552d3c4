"""The wall clock: generators, trainer and evaluator as processes on one or more nodes, with measured and idle time.

        schedule (scalerl.schedules)
            |  calls
        coordinator, the run's own process: draws prompts, verifies answers, writes checkpoints
            |                               |                               |
            | groups of requests            | groups with rewards           | publication to measure
            | "new weights: number 7"       | "publish as number 7"         |
            V   ^                           V   ^                           V   ^
            |   | finished rollouts         |   | updates, seconds          |   | pass rates, seconds
        generator 0 .. n                trainer rank 0 .. m             evaluator
            ^                               |       |                       ^
            | fetch the newest              | publish, each its share       | fetch the named one
        memory of the node                  |       +--> evaluator's store -+
            ^                               V
            +-------- keeper <------ memory of the node

Orders and answers are messages (`messages`), with one line (`line`) to each process. Weights never pass along a line:
they go through a store (`scalerl.weights`) in the memory of every node, and from one node's keeper to another's.
Without a sharded learner there are no ranks: the coordinator trains and publishes. Without an evaluator the coordinator
evaluates. On node 0, processes are children of the coordinator, which is the keeper there; on every other node, an
agent starts them and keeps their weights.

time_sheet          time spent by a process, measured by the process itself and as reported
running_clock       the clock of a process, which stands still while the process is stopped
accounts            the clock, and the accounts of all devices
messages            messages between the coordinator, the processes of units, and agents
launch              the processes of a run and their devices; starts the processes on this machine
agent               the program of an agent: starts, watches and ends processes on its node, and keeps their weights
coordinator         starts the processes on several nodes, by their agents: which have connected, which are gone
meeting_file        the file by which agents find the coordinator
authenticated       connections between nodes
started             the program of a process started by an agent
generator_process   the program of a generator process
voice               a unit's end of its line: answers and signs of life
line                the line to the process of one unit
fleet               the lines to the processes of one role: start, send, notice a death or silence, restart, end
generator_fleet     the generators as a fleet: their records, groups and weights
trainer_process     the program of a trainer rank, if the learner is sharded
remote_learner      the coordinator's side of all ranks
evaluator_process   the program of the evaluator, if there is one: measures published weights
remote_evaluator    the coordinator's side of the evaluator
process_cluster     the cluster used by schedules

Generators keep decoding during a step. On the virtual clock only the ranks of a sharded learner are processes.
`docs/design.md` states the guarantees of the wall clock.
"""
