"""Pass rates that are measured and never trained on. A map of the room:

evaluator      what evaluations ask of a sampler: none builds a generator
meter          everything that one evaluation measures
held_out       pass rate on held-out prompts
kept_rollouts  a few rollouts for people to read
prompt_counts  number of right answers to each prompt, as a text in a row
drift          KL from the start of the run
downstream     pass rate on task files that are only measured
"""
