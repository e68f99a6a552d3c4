#!/usr/bin/env bash
# inspect_ai 0.3.285: eval_set gives the score of an earlier evaluation after targets, questions or the scorer have changed.
#
# `eval_set` runs again what is not finished in its log_dir. What is finished is told by the names of task, model and solver,
# arguments, generation settings and the number of samples: the samples' content, the scorer and the code of a solver are not
# among them.
# Expected: after a target file is corrected, or another scorer is set, the second call evaluates anew, or refuses as it does
# after a change of temperature.
# Seen: it succeeds at once, runs nothing and returns the log of the first call: accuracy 1 where all targets are wrong now.
# A corrected grader or data set has no effect on the models that are evaluated already, and does on the later ones.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check inspect_ai==0.3.285
INSPECT_DISPLAY=none "$folder/venv/bin/python" -W ignore - "$folder/logs" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

from inspect_ai import Task, eval_set, task
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import exact, includes
from inspect_ai.solver import solver

state_now = {"question": "What is six times seven?", "target": "42", "scorer": includes, "num_samples": 3}
calls = []


@solver
def says_42():
    """Answers every question in the same words, so that no model is needed."""

    async def solve(state, generate):
        calls.append(state.input_text)
        state.output = ModelOutput.from_content("none", "It is 42")
        state.completed = True
        return state

    return solve


@task
def numbers():
    samples = [Sample(input=state_now["question"], target=state_now["target"]) for _ in range(state_now["num_samples"])]
    return Task(dataset=samples, solver=says_42(), scorer=state_now["scorer"]())


def accuracy(**changes):
    """Success, accuracy, name of the scorer and number of answered samples of a call with these changes."""
    state_now.update(changes)
    before = len(calls)
    success, (log,) = eval_set([numbers()], log_dir=sys.argv[1], model="mockllm/model")
    (score,) = read_eval_log(log.location).results.scores
    return success, score.metrics["accuracy"].value, score.name, len(calls) - before


print(f"inspect_ai {version('inspect_ai')}: success, accuracy, scorer and answered samples of each call")
found = {
    "first": accuracy(),
    "targets are 43 now; expected accuracy 0": accuracy(target="43"),
    "the scorer is exact now; expected accuracy 0": accuracy(target="42", scorer=exact),
    "another question; expected 3 answered samples": accuracy(scorer=includes, question="What is five times seven?"),
    "four samples": accuracy(question="What is six times seven?", num_samples=4),
}
for name, values in found.items():
    print(f"{name}: {values}")
old = (True, 1.0, "includes", 0)
sys.exit([*found.values()] != [(True, 1.0, "includes", 3), old, old, old, (True, 1.0, "includes", 4)])
PYTHON
