"""What can be known before training: `platform check` and, without torch, the start of `platform sweep`. A map:

examine      every check, each once for all recipes that it cannot tell apart
subject      a recipe, its tokenizer and its tasks, each made once
finding      what a check says
the checks
  data         prompts counted: kept, left out and why
  answers      written answers, judged by the verifier of their own task
  other_forms  right answers in forms that do not come from the task, judged so too
  curriculum   whether the prompts have the order that a curriculum asks for
  round_trip   text comes back from the tokenizer as it went in
  lengths      prompts and answers against budget and context
  noise        the standard error of an evaluation
  programs     the sandbox; tests that wrong programs pass
  engines      vLLM and DeepSpeed, where a recipe names them
  peak         the forecast of peak memory against this machine
  step         one optimiser step; the only one that loads torch
"""
