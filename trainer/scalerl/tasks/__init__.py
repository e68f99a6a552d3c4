"""Tasks to train on and evaluate: prompts with stable ids, a verifier, and demonstrations for the warm start.

A task makes all its prompts from its own settings, never from the run's seed, and splits them by the hash of their id.
So every run of a scale trains and validates on the same prompts, and no prompt is in both sets.

task             the protocol, the written form of a prompt, and TaskError
catalogue        the tasks of a recipe, made from its settings
generated here
  k_smallest     the k smallest symbols of a list in order, after a written draft: the math-like task
  modular        a program of one to three operations modulo a prime, judged by running it: the program-like task
in a file, with prompts and answers as text
  mathematics    GSM8K, MATH, AIME
  coding         MBPP, HumanEval, DeepCoder
                 code_test_forms: forms of tests; paired_tests: tests in two lists; python_test_code, calls_of_tests:
                 tests in Python; program_text: the program in an answer; function_head: answers without the
                 head of their function; proof: rejects tests that prove nothing
  choices        ARC, HellaSwag
  questions      NaturalQuestions, SQuAD
  forms          columns and right answers of published data sets by name; live_code_bench: LiveCodeBench
  asked          the text of a prompt: a template filled from a row
  file_task      the common part of these four; files: rows of JSON lines, Parquet and `datasets` folders;
                 written_json: JSON whose numbers keep their text; arrow_values: columns of Arrow, also of JSON
made by a library
  gym            data sets of `reasoning-gym`
made by a function of the user
  own            its problems and its judge
played with an environment
  episodes       starts of episodes, and demonstrations of them
text_task        the common part of tasks in files, of `gym` and of `own`
mix              several tasks as one
split            the held-out split by hash
responses        demonstrations, and answers that end
left_out         rows that are not used, with reasons
same_problem     normal forms that are equal for the same problem
leakage          keeps everything measured anywhere out of training
lengths          lengths of prompts
"""

from scalerl.tasks.catalogue import Tasks, all_tasks, make_task
from scalerl.tasks.mix import Mix
from scalerl.tasks.task import Task, TaskError
