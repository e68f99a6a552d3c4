"""Policies: token ids to log-probabilities. A map of the room:

policy               what every policy is: hidden states, head, log-probabilities, precision
head                 hidden states to logits, and to log-probabilities and entropy in bounded memory
exact_product        float32 products on a GPU, on tensor cores
build                the policy that a recipe describes
kernels              steps of the built-in policy on a CPU, compiled by numba; first_use: at the first use of an install
device               where a policy computes: the recipe's `device`, or the device found
outline              networks with shapes but no memory, and their weights part by part
llama                the built-in policy and its cache; llama_files: its weights under Hugging Face's names
transformers_policy  any causal language model that `transformers` loads, and its cache
transformers_load    policies of such models, weights not yet set
transformers_cache   what their attention layers write into a cache
transformers_masks   attention masks of these models
from_gguf            a model's folder from a GGUF file
transformers_folder  a model's folder, read completely or rejected with a reason
transformers_weights their weights under the names in their files
attention            attention of packed sequences without a full mask: by blocks on a GPU, by rows on a CPU
adapter              a `transformers` policy with a LoRA adapter, by `peft`
adapter_weights      an adapter's tensors by name, and added to a model's own
kv_cache             the base of both caches
lanes_cache          a cache that keeps rows one by one, or side by side for compiled steps
cached_attention     attention of one query per row to cached keys and values
linear               float32 products on a CPU by oneDNN
decode_graphs        decode steps on a GPU, captured once and replayed
packing              rows without padding, with shared prompts
router               the load-balancing loss of a mixture of experts
size                 the model sizes that determine its compute
"""
