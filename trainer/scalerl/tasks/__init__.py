"""What is trained on and evaluated: prompts with stable ids, a verifier, and demonstrations for the warm start.

A task makes all its prompts from its own settings alone, never from the run's seed, and splits them by the hash of
their id, so every run of a scale trains and validates on the same prompts and no prompt is in both.

task             the protocol; TaskError
catalogue        the tasks of a recipe: a kind of task is made here
made here
  k_smallest     the k smallest symbols of a list in order, after a written draft: the math-like one
  modular        a program of one to three operations modulo a prime, judged by running it: the program-like one
in a file, asked and judged as text
  mathematics    GSM8K, MATH, AIME
  coding         MBPP, HumanEval, DeepCoder; code_test_forms: how such files write their tests, paired_tests those in
                 two lists;
                 python_test_code, calls_of_tests: those that are Python; program_text: where an answer has its program;
                 proof: tests refuse wrong programs
  choices        ARC, HellaSwag
  questions      NaturalQuestions, SQuAD
  forms          columns and right answers of published data sets by name; live_code_bench: one that needs more
  asked          what a prompt says: a template filled from a row
  file_task      what these four have in common; files: JSON lines, Parquet and `datasets` folders row by row
mix              several tasks as one
written          where a prompt stands, what it asks, a right answer
split            held out by hash
responses        demonstrations, and answers that end
left_out         rows that are not used, and why
written_numbers  numbers with the text that they were written as
same_problem     when two texts ask the same problem
leakage          nothing that is measured anywhere is trained on anywhere
lengths          how long their prompts are
"""

from scalerl.tasks.catalogue import Tasks, all_tasks, make_task
from scalerl.tasks.mix import Mix
from scalerl.tasks.task import Task, TaskError

__all__ = ["Mix", "Task", "TaskError", "Tasks", "all_tasks", "make_task"]
