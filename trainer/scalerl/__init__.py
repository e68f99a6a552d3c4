"""The trainer: a resolved recipe to a curve. It knows nothing of sweeps, Slurm or MLflow.

what is trained
  recipe/            every choice of a run, with the paper's values as defaults; `frozen`: the base of its models
  tasks/, tokens/    prompts, verifier, demonstrations; text to token ids, by a pretrained model's tokenizer too
  content_hash       what a task file holds, as one hash
  policy             what every policy is: hidden states, head, log-probabilities, precision
  model              the policy that a recipe describes
  llama, llama_cache                the built-in one: a Llama decoder in Hugging Face's format
  transformers_policy, transformers_cache    any causal language model that `transformers` loads
  packing, router    rows without padding, prompts once; the load-balancing loss of a mixture of experts
  warm_start         the supervised start, shared by all runs of a scale and seed
judges
  verifiers/         of answers given as text: math, choices, questions, programs; none loads torch
  sandbox/           runs programs that the policy wrote, shut in and bounded
  judge              groups of answers to groups of rewards, counted; what could not be judged is left out
one optimiser step
  batch              prompt, rollout, group, batch; the letters of the tensor axes
  rewards, advantages, losses, aggregation    the formulas, tensors in and tensors out
  kl, entropy, running_statistics, learning_rate    more of them
  critic, gae        PPO's value network in place of the mean of a group
  learner            groups in, new weights out; `loss_scale`: for FP16
generation
  generator          continuous batching, weights swapped between decode steps; `kv_cache`: what its caches share
  pool, curricula    which prompt comes next; `mixed_pool`: of a mix of tasks
generators and a trainer together
  cluster            what is between them, whatever the clock
  virtual_cluster, cost    played by one process, time modelled
  wall/              processes of their own, time measured
  schedules/         PipelineRL-k, PPO-off-policy-k
one run
  train              the loop, evaluations, checkpoints; `evaluate`: the held-out pass rate;
                     `downstream`: task files that are only measured
  run_folder, metrics    the files of a run; neither loads torch
  health             what the last steps foretell, as warnings
"""
