"""Pass rates that are measured and never trained on. A map of the room:

evaluator      the protocol: an evaluation asks a sampler for rollouts and never builds a generator
held_out       pass rate on held-out prompts
kept_rollouts  a few rollouts for people to read
prompt_counts  number of right answers to each prompt, as a text in a row
drift          KL from the start of the run
downstream     pass rate on task files that are only measured
"""
