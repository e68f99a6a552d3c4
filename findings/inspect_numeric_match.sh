#!/usr/bin/env bash
# inspect_ai 0.3.285: the scorer match(numeric=True) takes numbers for equal that agree in five significant digits.
#
# Expected: the answer 123457 is wrong for the target 123456, as 12346 is for 12345.
# Seen: it is correct, and so are 1000010 for 1000000 and 2024001 for 2024002: with targets of six digits and more, wrong
# answers count, at location "end", "any" and "exact" alike. A comparison on whole numbers that are large (sums, years with
# months, amounts of money) loses the differences between variants that are nearly right and right.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check inspect_ai==0.3.285
INSPECT_LOG_DIR="$folder/logs" INSPECT_DISPLAY=none "$folder/venv/bin/python" -W ignore - 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import solver

PAIRS = [("12346", "12345"), ("123457", "123456"), ("1000010", "1000000"), ("2024001", "2024002"), ("1000100", "1000000")]
"""Answers, each with another number as its target."""


@solver
def answers():
    """Gives each sample's own answer, so that no model is needed."""

    async def solve(state, generate):
        state.output = ModelOutput.from_content("none", f"The answer is {state.input_text}")
        state.completed = True
        return state

    return solve


samples = [Sample(input=answer, target=target) for answer, target in PAIRS]
(log,) = evaluate(Task(dataset=samples, solver=answers(), scorer=match(numeric=True)), model="mockllm/model")
found = [sample.scores["match"].value for sample in sorted(log.samples, key=lambda sample: sample.id)]
print(f"inspect_ai {version('inspect_ai')}: five answers that differ from their targets; expected I for each")
for (answer, target), value in zip(PAIRS, found):
    print(f"answer {answer}, target {target}: {value}")
print(f"accuracy {log.results.scores[0].metrics['accuracy'].value:.2f}; expected 0.00")
sys.exit(found != ["I", "C", "C", "C", "I"])
PYTHON
