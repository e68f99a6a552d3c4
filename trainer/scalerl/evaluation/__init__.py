"""Pass rates that are measured and never trained on. A map of the room:

evaluator      the protocol: an evaluation asks a sampler for rollouts and never builds a generator
held_out       of the held-out prompts
kept_rollouts  a few rollouts as people read them
prompt_counts  right answers to each prompt, as a row has them
drift          how far what is measured is from the start
downstream     of task files that are only measured
"""
