"""What a started sweep leaves on disk, and what its runs do by their own word. A map of the room:

home           the folders
started_sweep  a sweep in its home folder: plan, runs, stops, cancellation, lock
labels         what readers of a comparison are told: names, units, window, variants
plan           which variants and runs a started sweep has
state          what a run is doing, from its own status file and whether its process lives
cancellation   which runs their user has cancelled
stops          which runs a stop rule ended
"""
