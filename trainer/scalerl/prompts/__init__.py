"""Choice of the next prompt, and the rewards of its answers. A map of the room:

pool          random prompts, without retired ones
ordered_pool  prompts in order of difficulty
own_pool      prompts by the weights of a user's own function
mixed_pool    prompts of a mix of tasks
judge         groups of answers to groups of rewards, with counts of outcomes
demonstrations  written solutions accepted by their own verifier, for the warm start
"""
