"""Pass rates that are measured and never trained on. A map of the room:

held_out    of the held-out prompts
downstream  of task files that are only measured
"""
