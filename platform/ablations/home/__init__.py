"""Reads and writes what a started sweep keeps on disk, and reads what its runs report. A map of the room:

home           the folders
started_sweep  a sweep in its home folder: plan, runs, stops, cancellation, lock
plan           which variants and runs a started sweep has
state          what a run is doing, from its own status file and whether its process lives
cancellation   which runs their user has cancelled
stops          which runs a stop rule ended
"""
