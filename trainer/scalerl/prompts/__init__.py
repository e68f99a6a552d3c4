"""Which prompt comes next, and the rewards of its answers. A map of the room:

pool          prompts at random, without those that are retired
ordered_pool  prompts in an order of difficulty
mixed_pool    prompts of a mix of tasks
judge         groups of answers to groups of rewards, counted
demonstrations  written solutions that their own verifier takes, for the warm start
"""
