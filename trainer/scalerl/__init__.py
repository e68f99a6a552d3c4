"""The trainer: a resolved recipe to a curve. It knows nothing of sweeps, Slurm or MLflow.

what is trained
  recipe/            every choice of a run, with the paper's values as defaults; `frozen`: the base of its models
  tasks/, tokens/    prompts, verifier, demonstrations; text to token ids, by a pretrained model's tokenizer too
  policy             what every policy is: hidden states, head, log-probabilities, precision
  model              the policy that a recipe describes
  llama, llama_cache                the built-in one: a Llama decoder in Hugging Face's format
  transformers_policy, transformers_cache    any causal language model that `transformers` loads
  packing, router    rows without padding; the load-balancing loss of a mixture of experts
  warm_start         the supervised start, shared by all runs of a scale and seed
judges
  verifiers/         of answers given as text: math, choices, questions, programs; none loads torch
  sandbox/           runs programs that the policy wrote, shut in and bounded
one optimiser step
  batch              prompt, rollout, group, batch; the letters of the tensor axes
  rewards, advantages, losses, aggregation    the formulas, tensors in and tensors out
  kl, entropy, running_statistics, learning_rate    more of them
  learner            groups in, new weights out; `loss_scale`: for FP16
generation
  generator          continuous batching, weights swapped between decode steps; `kv_cache`: what its caches share
  pool               which prompt comes next
the virtual clock
  cost               what work takes on the modelled device
  cluster            generators, trainers, what is between them, and the clock
  schedules/         PipelineRL-k, PPO-off-policy-k
one run
  train              the loop, evaluations, checkpoints; `evaluate`: the held-out pass rate
  run_folder, metrics    the files of a run; neither loads torch
"""
