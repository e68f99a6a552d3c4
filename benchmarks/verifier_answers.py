"""Verdicts on generated answers: 10,000 for each verifier, from a seed, most of them broken in some way.

    python benchmarks/verifier_answers.py
    python benchmarks/verifier_answers.py --answers 200 --verifier math --dry-run

An answer is a right one, a right one with parts replaced, repeated, cut or moved, or a mix of what breaks parsers
(brackets, LaTeX, digits, control characters, long runs), of up to 100,000 characters. None may make a verifier raise,
end as `timed_out` or `crashed`, or take longer than its limit by the clock on the wall; the script then ends with code
1. Writes `results/verifier_answers.json`: outcomes, and the longest time of each verifier. With
`--verifier` the others keep theirs.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from record import RESULTS, write_record

from scalerl.rollout import Outcome
from scalerl.sandbox import Limits, Sandbox
from scalerl.verifiers.judge_worker import wall_limit_s
from scalerl.verifiers.mathematics.answer import judge_math
from scalerl.verifiers.programs.code_tests import CallTest, CodeTest, StdioTest, judge_code
from scalerl.verifiers.short_answers.choice import judge_choice
from scalerl.verifiers.short_answers.qa import judge_qa

NUM_ANSWERS, SEED, THREADS = 10_000, 0, 2
MAX_CHARS = 100_000
TIME_LIMIT_S = 0.5
LIMITS = Limits(wall_s=20.0, cpu_s=2.0, memory_mb=256, output_kb=1024)
MACHINERY_S = 10.0
"""Of starting and ending a sandbox, beside its limits."""

LATEX_NAMES = (
    "frac sqrt int sum prod lim log ln sin cos tan pi infty cdot times pm le ge cup cap in binom overline left right "
    "text mathrm begin end boxed fbox dfrac tfrac circ mod det vec hat choose to mid emptyset mathbb quad"
)
LATEX = r"""
\frac{1}{2}|\frac12|\sqrt[3]{8}|\boxed{|\boxed{\boxed{|\fbox{2}|\text{ and }|\{1,2\}|x^{y^z}|\lim_{x\to 0}|\frac{d}{dx}
|\begin{pmatrix}1&2\\2&4\end{pmatrix}|\end{pmatrix}^{-1}|\int x dx|\int_0^\infty|\sum_{n=1}^{10}|9^{9^{9}}|99!|1/0|0/0
|\binom{50}{25}|\log_1 5|1e400|10^{5000}|x=5|x<3|(1,2]|[0,1)|3:30|1011_2|5 cm|50\%|90^\circ|2 1/2|1,234|11,\! 111
|0.333333|####|#### 4|The answer is |answer: |Answer:|option |(B)|B.| or | and |the |a |Paris|even|no solution"""
PYTHON = (
    """```python\n|```|def |return |lambda: |import |print(|while True: pass|[]|{}|None|yield|raise |    |\n    |B\n"""
)
PIECES = [
    *"0123456789+-*/^=<>!?.,;:()[]{}|&%$#@_~'\"`\\ \n\t\0\x07\x1b\x7f\x85\u2028\ufeff\ud800\u0661²½√π∞≤∪−é中🙂",
    *(f"\\{name}" for name in LATEX_NAMES.split()),
    *LATEX.replace("\n", "").split("|"),
    *PYTHON.split("|"),
]
GOLDS = r"""
72; -5; 1,234; 0.25; \frac{14}{3}; 2\frac{1}{2}; 3\sqrt{13}; 2\pi; (3,\frac{\pi}{2}); [0,1); (-\infty,2]\cup[5,\infty);
 \{1,2,3\}; 1,-2; x^2+2x+1; x=5; x\le 3; 5+2i; 50\%; 90^\circ; 10\text{ cm}; \text{even}; \text{(B)}; 1011_2; 3:30;
 \sin x; \binom{5}{2}; 2^{20000}; \int x dx; \begin{pmatrix}1&2\\3&4\end{pmatrix}; 9^{9^9}; \log_2 8; \infty;
 e^{i\pi}"""
MATH_GOLDS = [gold.strip() for gold in GOLDS.split(";")]
QA_GOLDS = [
    ["Paris"],
    ["La Tour Eiffel", "Eiffel Tower"],
    ["14 December 1972 UTC", "December 1972"],
    ["Röntgen"],
    ["中国"],
]

ADD = "def add(a, b):\n    total = a + b\n    return total\n"
SORT = "def order(items):\n    items = list(items)\n    items.sort()\n    return [one for one in items]\n"
LINES = (
    "import sys\nfor line in sys.stdin:\n    numbers = [int(word) for word in line.split()]\n    print(sum(numbers))\n"
)
POWER = "def power(a, n):\n    value = 1\n    for _ in range(n):\n        value = value * a\n    return value\n"
PROBLEMS: list[tuple[str, list[CodeTest]]] = [
    (ADD, [CallTest(call="add", args=args, expected=sum(args)) for args in ((2, 2), (10**400, 1))]),
    (SORT, [CallTest(call="order", args=(items,), expected=sorted(items)) for items in ([3, 1.5, 2], [])]),
    (LINES, [StdioTest(stdin="1 2\n3 4\n", stdout="3\n7\n")]),
    (POWER, [CallTest(call="power", args=(a, n), expected=a**n) for a, n in ((3, 10_000), (0.5, 2))]),
]


def junk(rng: random.Random, most: int) -> str:
    """A mix of pieces, some of them in long runs."""
    length = int(10 ** rng.uniform(0, 5)) if rng.random() < 0.3 else rng.randrange(1, 200)
    parts: list[str] = []
    size = 0
    while size < min(length, most):
        part = rng.choice(PIECES) * (int(10 ** rng.uniform(0, 4)) if rng.random() < 0.05 else 1)
        parts.append(part)
        size += len(part)
    return "".join(parts)[:most]


def mutated(rng: random.Random, text: str) -> str:
    """The text with a few of its parts replaced, repeated, cut or moved."""
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randrange(1, 12))
        part = text[start:end]
        text = rng.choice(
            (
                text[:start] + rng.choice(PIECES) + text[end:],
                text[:start] + part * rng.randrange(2, 40) + text[end:],
                text[:start] + text[end:],
                part + text[:start] + text[end:],
                text[:start] + rng.choice(PIECES) + text[start:],
            )
        )
    return text[:MAX_CHARS]


def response(rng: random.Random, right: str) -> str:
    """A whole answer around the right one, one broken in some way, or a mix."""
    kind = rng.random()
    stated = right if kind < 0.2 else mutated(rng, right) if kind < 0.7 else junk(rng, 1_000)
    if kind > 0.9:
        return junk(rng, MAX_CHARS)
    before = junk(rng, 2_000) if rng.random() < 0.2 else rng.choice(("", "So ", "Let me think.\n"))
    form = rng.choice((r"{}\boxed{{{}}}", r"{}$\boxed{{{}}}$.", "{}The answer is {}", "{}\n#### {}", "{}${}$", "{}{}"))
    return form.format(before, stated)[:MAX_CHARS]


def math_answer(rng: random.Random) -> Callable[[], Outcome]:
    gold = rng.choice(MATH_GOLDS)
    text = response(rng, gold)
    return lambda: judge_math(text, rf"\boxed{{{gold}}}", time_limit_s=TIME_LIMIT_S).outcome


def choice_answer(rng: random.Random) -> Callable[[], Outcome]:
    gold = rng.choice("ABCD")
    text = response(rng, gold)
    return lambda: judge_choice(text, gold, num_choices=4).outcome


def qa_answer(rng: random.Random) -> Callable[[], Outcome]:
    gold: Sequence[str] = rng.choice(QA_GOLDS)
    text = response(rng, rng.choice(gold))
    min_f1 = rng.choice((1.0, 0.5))
    return lambda: judge_qa(text, gold, min_f1=min_f1).outcome


def code_answer(rng: random.Random) -> Callable[[], Outcome]:
    program, tests = rng.choice(PROBLEMS)
    kind = rng.random()
    text = program if kind < 0.1 else mutated(rng, program) if kind < 0.85 else junk(rng, MAX_CHARS)
    return lambda: judge_code(text, tests, sandbox=_sandbox(), limits=LIMITS)


_made: list[Sandbox] = []


def _sandbox() -> Sandbox:
    if not _made:
        _made.append(Sandbox())
    return _made[0]


MAKE: dict[str, Callable[[random.Random], Callable[[], Outcome]]] = {
    "math": math_answer,
    "code": code_answer,
    "choice": choice_answer,
    "qa": qa_answer,
}
WALL_LIMIT_S = {
    "math": wall_limit_s(TIME_LIMIT_S),
    "code": LIMITS.wall_s + MACHINERY_S,
    "choice": TIME_LIMIT_S,
    "qa": TIME_LIMIT_S,
}


def judged(judge: Callable[[], Outcome]) -> tuple[str, float]:
    """The outcome, or the exception's name, and the seconds that it took."""
    start = time.monotonic()
    try:
        outcome: str = judge()
    except Exception as error:
        outcome = f"raised {type(error).__name__}"
    return outcome, time.monotonic() - start


def examine(verifier: str, num_answers: int, seed: int) -> dict[str, Any]:
    """What a verifier says of its answers, and how long it takes."""
    judges = (MAKE[verifier](random.Random(f"{seed} {verifier} {i}")) for i in range(num_answers))
    with ThreadPoolExecutor(THREADS if verifier in ("math", "code") else 1) as threads:
        found = list(threads.map(judged, judges))
    limit = WALL_LIMIT_S[verifier]
    outcomes = Counter(outcome for outcome, _ in found)
    bad = [i for i, (outcome, s) in enumerate(found) if outcome not in ("right", "wrong", "unparsable") or s > limit]
    return {
        "answers": num_answers,
        "outcomes": dict(sorted(outcomes.items())),
        "longest_s": round(max(s for _, s in found), 2),
        "mean_s": round(sum(s for _, s in found) / num_answers, 5),
        "limit_s": limit,
        "over_the_limit": sum(s > limit for _, s in found),
        "not_judged": bad,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=NUM_ANSWERS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--verifier", choices=list(MAKE), action="append")
    parser.add_argument("--dry-run", action="store_true", help="write no record")
    options = parser.parse_args()
    found = {name: examine(name, options.answers, options.seed) for name in options.verifier or MAKE}
    for name, result in found.items():
        print(name, result)
    if not options.dry_run:
        path = RESULTS / "verifier_answers.json"
        others = json.loads(path.read_text())["verifiers"] if options.verifier and path.exists() else {}
        write_record("verifier_answers", {"seed": options.seed, "verifiers": others | found})
    sys.exit(any(result["not_judged"] for result in found.values()))


if __name__ == "__main__":
    main()
