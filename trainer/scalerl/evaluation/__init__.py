"""Pass rates that are measured and never trained on. A map of the room:

meter          everything that one evaluation measures; the protocol of evaluators
measured_rows  what it found, as columns of rows
held_out       pass rate on held-out prompts, from a sampler: no evaluation builds a generator
episode_columns  columns about episodes
kept_rollouts  a few rollouts for people to read
prompt_counts  number of right answers to each prompt, as a text in a row
drift          KL from the start of the run
downstream     pass rate on task files that are only measured
"""
