"""Policies: token ids to log-probabilities. A map of the room:

policy               what every policy is: hidden states, head, log-probabilities, precision
build                the policy that a recipe describes
llama                the built-in one, and its cache; llama_files: its weights under Hugging Face's names
transformers_policy  any causal language model that `transformers` loads, and its cache
transformers_load    those models, their weights not set; transformers_masks: what they may attend to;
                     transformers_weights: their weights under the names of their files
kv_cache             what both caches share
packing              rows without padding, prompts once
router               the load-balancing loss of a mixture of experts
size                 what of a model decides how much work it is
"""
