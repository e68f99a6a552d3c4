"""The exit codes of the commands: 0 for done or submitted to Slurm, and those below."""

FAILED, WRONG_INPUT, NOT_FINISHED = 1, 2, 3
"""1: a run failed, or a check found an error. 2: input, files or machine do not fit. 3: runs are left, or Ctrl-C."""

KEEP, DISCARD, RUN_AGAIN, SAME_AS_BEFORE = 0, 10, 11, 12
"""The answers of `platform keep`."""
