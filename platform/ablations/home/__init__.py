"""Reads and writes what a started sweep keeps on disk, and reads what its runs report. A map of the room:

home           the folders
started_sweep  a sweep in its home folder: plan, runs, stops, cancellation, lock
start_command  the command that started a sweep, and those made from it, for the current folder
labels         the variants and runs of a plan, with their names, and the size of a study
source         where an imported run comes from
plan           the variants and runs of a started sweep
state          what a run is doing, from its status file and its heartbeat
heartbeat      whether the process that trains a run is alive
declared       claims and design as they were before the first run
ledger         lines that are only ever added, each sealed with the one before
notifications  tells a webhook what happens to the runs
notes          what people have written about a sweep, its variants and its runs
cancellation   runs that their user has cancelled
stops          runs that a stop rule has ended
"""
