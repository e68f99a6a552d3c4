"""Lines that trainers print for each step, among whatever else they print:

step:5 - val-core/openai/gsm8k/acc/mean@8:0.31 - perf/time_per_step:61.2         verl, behind Ray's colours and prefix
Step 5 | rewards:4.1 successes:0.31                                               torchtune's files
perf 5: {'perf/step_time': 61.2}                                                  slime; eval 5: {...}
Global step 5: {'reward': 0.4, 'timing/step_total': 61.2}                         OpenRLHF
"""

import re
from pathlib import Path

from ablations.errors import Place
from ablations.fit.table_file import text_lines
from ablations.logs.log import HALF_WRITTEN, Log
from ablations.logs.row_values import one_each
from ablations.logs.rows import RowColumns, log_of_columns

ESCAPES = re.compile(r"\x1b\[[\d;]*m")
STEP_OF_LINE = re.compile(
    r"\b(?:step|eval|perf|rollout|global_step)[ :](\d+(?:,\d{3})*)(?: [-|] |: \{|, \w+: \{)", re.IGNORECASE
)
LOGGED_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|nan|inf)"
PAIR_OF_LINE = re.compile(
    rf"(?:'([^']+)'|(?<![^\s{{,])([^\s:{{}}',]+)): ?'?(?:[\w.]+\()?({LOGGED_NUMBER})(?:, dtype=\S+)?\)?'?"
    r"(?=[\s}]|,(?!\d)|$)",  # the 1 of 1,234 is none
    re.IGNORECASE,
)


def read_console(path: Path, name: str) -> Log:
    """The log in the printed lines of a trainer; FileError if no line has a step and values.

    A last line without an end is skipped with a note, since its last number may be cut.
    """
    columns, notes = RowColumns(str(path)), ()
    parts = (part for line in text_lines(path) for part in ESCAPES.sub("", line).splitlines(keepends=True))
    for number, line in enumerate(parts, start=1):
        if (head := STEP_OF_LINE.search(line)) is None:
            continue
        if number > 1 and line == line.splitlines()[0]:
            notes = (HALF_WRITTEN,)
            break
        # Of a column with two values, as in "train acc: 0.9 | val acc: 0.3", neither counts.
        pairs = [(quoted or plain, float(text)) for quoted, plain, text in PAIR_OF_LINE.findall(line, head.end(1))]
        if pairs:
            columns.add(f"line {number}", one_each([("step", int(head[1].replace(",", ""))), *pairs]))
    if not columns.num_rows:
        raise Place(source=str(path)).error(
            "no line has a step and values, such as 'step:5 - val/acc:0.31'",
            "name a log that the trainer writes to a file; TRL prints no steps, but its trainer_state.json has them",
        )
    return log_of_columns(columns, name=name, steps=("step",), config={}, notes=notes)
