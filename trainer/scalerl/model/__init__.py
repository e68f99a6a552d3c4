"""Policies: token ids to log-probabilities. A map of the room:

policy               what every policy is: hidden states, head, log-probabilities, precision
head                 hidden states to logits, and to log-probabilities and entropy in bounded memory
build                the policy that a recipe describes
device               where it computes: the recipe's `device`, or the one that is found
outline              networks of shapes alone, and their weights part by part
llama                the built-in one, and its cache; llama_files: its weights under Hugging Face's names
transformers_policy  any causal language model that `transformers` loads, and its cache
transformers_load    those models, their weights not set; transformers_masks: what they may attend to;
                     transformers_folder: read from a folder whole, or refused by name
                     transformers_weights: their weights under the names of their files
attention            by blocks of tokens, for passes too long for a whole mask
kv_cache             what both caches share; cached_attention: of one query a row to what its cache holds
linear               products of float32 on a processor by oneDNN
decode_graphs        on a GPU, decode steps captured once and replayed
packing              rows without padding, prompts once
router               the load-balancing loss of a mixture of experts
size                 what of a model decides how much work it is
"""
