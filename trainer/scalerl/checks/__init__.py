"""Checks before training: `platform check` and, without torch, the start of `platform sweep`. A map of the room:

examine      runs every check once for all recipes that it cannot tell apart
subject      a recipe, its tokenizer and its tasks, each made once
finding      the result of a check
the checks
  data         numbers of prompts kept and left out, with reasons, and the order that a curriculum needs
  answers      written answers, judged by their own verifier
  other_forms  right answers in forms that do not come from the task, judged by the same verifier
  constant_answers  what one text earns that is the answer to every prompt, judged by the same verifier
  own_process  runs the program own_trial, which tries one of the user's own functions on own_inputs; own_task_trial: a
               task; own_environment_trial: an environment; own_curriculum_trial: a curriculum
  round_trip   text that comes back unchanged from the tokenizer
  lengths      prompts and answers against budget and context
  noise        the standard error of an evaluation
  programs     the sandbox, and tests that wrong programs pass
  engines      vLLM and DeepSpeed, if a recipe names them
  memory       the forecast of peak memory against this machine
  step         one optimiser step; the only check that loads torch
"""
