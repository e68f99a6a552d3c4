"""What a started sweep leaves on disk, and what its runs do by their own word. A map of the room:

home          the folders
plan          what a started sweep consists of
state         what a run is doing, from its own status file and whether its process lives
cancellation  which runs their user has cancelled
stops         which runs a stop rule ended
allocation    how a total has been shared out
"""
