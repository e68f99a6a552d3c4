"""Public graders on `tests/data/answers/math.jsonl`: how many answers of each kind they judge otherwise than expected.

    python benchmarks/graders_compared.py NAME CHECKOUTS [ROWS]    # prints JSON

`qwen` runs code that an answer holds: only for answers that are known, and where nothing can be lost.

`CHECKOUTS` holds the published sources `qwen/evaluation/grader.py`, `rllm_utils.py`, `prime_grader.py` and
`prime___init__.py` (as the package `prime_math`), `hendrycks.py` and `minerva.py`; math-verify is installed. A gold
answer is given to each grader as the value in its last box, after its last "####", or whole.
"""

import importlib
import json
import multiprocessing
import re
import sys
from collections import defaultdict
from pathlib import Path

ROWS = Path(__file__).parents[1] / "tests" / "data" / "answers" / "math.jsonl"
LIMIT_S = 10.0


def boxed(text: str) -> str | None:
    """Content of the last box that closes, or None."""
    for start in reversed([found.end() for found in re.finditer(r"\\(?:boxed|fbox)\s*\{", text)]):
        depth = 1
        for i in range(start, len(text)):
            depth += (text[i] == "{") - (text[i] == "}")
            if not depth:
                return text[start:i]
    return None


def bare(gold: str) -> str:
    return boxed(gold) or gold.rsplit("####", 1)[-1].strip()


def stated(answer: str) -> str:
    """The last box, or what follows "answer is" or "Answer:": two of the graders leave this to their caller."""
    said = re.findall(
        r"answer(?: is)?:?[* ]*([^\n]+?)[*.]*(?: I hope it is correct\.)?$", answer, re.IGNORECASE | re.MULTILINE
    )
    return (boxed(answer) or (said[-1] if said else answer)).strip("$ ")


def math_verify():
    its = importlib.import_module("math_verify")
    return lambda gold, answer: its.verify(its.parse(f"\\boxed{{{bare(gold)}}}"), its.parse(answer))


def qwen():
    sys.path += [f"{sys.argv[2]}/qwen/evaluation", f"{sys.argv[2]}/qwen/evaluation/latex2sympy"]
    equal, parser = importlib.import_module("grader").math_equal, importlib.import_module("parser")
    return lambda gold, answer: equal(parser.extract_answer(answer, "math"), parser.strip_string(bare(gold)))


def rllm():
    its = importlib.import_module("rllm_utils")

    def judge(gold, answer):
        said, right = its.extract_answer(answer.rsplit("</think>", 1)[-1]), bare(gold)
        return said is not None and (its.grade_answer_mathd(said, right) or its.grade_answer_sympy(said, right))

    return judge


def prime():
    score = importlib.import_module("prime_math").compute_score
    return lambda gold, answer: score(answer, bare(gold))[0]


def hendrycks():
    equal = importlib.import_module("hendrycks").is_equiv
    return lambda gold, answer: equal(stated(answer), bare(gold))


def minerva():
    its = importlib.import_module("minerva")

    def judge(gold, answer):
        said, right = its.normalize_final_answer(stated(answer)), its.normalize_final_answer(bare(gold))
        return said == right or its.is_equiv(said, right)

    return judge


def answer_all(name, rows, pipe):
    sys.path.append(sys.argv[2])
    sys.stdout = sys.stderr  # some graders print, and some run what an answer prints
    judge = {f.__name__: f for f in (math_verify, qwen, rllm, prime, hendrycks, minerva)}[name]()
    for row in rows:
        try:
            pipe.send("right" if judge(row["gold"], row["answer"]) else "wrong")
        except Exception as error:
            pipe.send(type(error).__name__)


def verdicts(name, rows):
    """One verdict a row; a grader that does not answer in time is started anew behind that row."""
    seen = []
    while len(seen) < len(rows):
        pipe, other = multiprocessing.Pipe()
        process = multiprocessing.Process(target=answer_all, args=(name, rows[len(seen) :], other))
        process.start()
        while len(seen) < len(rows) and pipe.poll(LIMIT_S):
            seen.append(pipe.recv())
        process.kill()
        if len(seen) < len(rows):
            seen.append("out of time")
    return seen


if __name__ == "__main__":
    rows = [json.loads(line) for line in Path(*sys.argv[3:4] or [ROWS]).read_text().splitlines()]
    counts = defaultdict(lambda: {"rows": 0, "wrong accepted": 0, "right refused": 0})
    for row, seen in zip(rows, verdicts(sys.argv[1], rows), strict=True):
        count = counts[row["kind"]]
        count["rows"] += 1
        count["wrong accepted"] += seen == "right" and row["expected"] == "wrong"
        count["right refused"] += seen != "right" and row["expected"] == "right"
    print(json.dumps(counts))
