"""An engine of `judge_worker`: the score of an answer by the data set of `reasoning-gym` that asked the question.

Some scorers evaluate the answer as Python (countdown, puzzle24). So the process first gives up files, sockets, programs
and signals, and an answer that names Python's own machinery is wrong unread.
"""

import base64
import pickle
import platform
import re
from functools import cache, lru_cache
from typing import Any

from scalerl.gym import data_set
from scalerl.rollout import Judgement
from scalerl.sandbox.inside import PR_SET_NO_NEW_PRIVS, install_filter, prctl
from scalerl.sandbox.system_calls import reading_filter

_MACHINERY = re.compile(
    r"__|\b(?:eval|exec|compile|open|input|import|getattr|setattr|delattr|globals|locals|vars|breakpoint|lambda)\b\s*\("
)


def packed(problem: Any) -> str:
    """A problem of the library as text, for `judge`."""
    return base64.b64encode(pickle.dumps(problem)).decode()


KNOWN = {
    "answer": "2",
    "dataset": "chain_sum",
    "config": "{}",
    "problem": packed({"question": "1 + 1 =", "answer": "2", "metadata": {}}),
}


def warm_up() -> None:
    """Load the library."""
    _scorer(str(KNOWN["dataset"]), str(KNOWN["config"]))


def judge(answer: str, dataset: str, config: str, problem: str) -> Judgement:
    """Right if the score is 1, else wrong with the score, at least 0.

    Raises SystemExit, which ends this process, if it cannot be confined: then nothing is judged.
    """
    try:
        confine()
    except (OSError, ValueError) as error:
        raise SystemExit(f"answers cannot be scored on this machine: {error}") from error
    if _MACHINERY.search(answer):
        return Judgement("wrong", score=0.0)
    score = float(_scorer(dataset, config).score_answer(answer, pickle.loads(base64.b64decode(problem))))
    return Judgement("right") if score >= 1 else Judgement("wrong", score=max(0.0, score))


@cache
def confine() -> None:
    """From here on, let this process read files and compute, and nothing else. Weaker than the sandbox but without its
    start-up time: for libraries that read an answer, not for programs that a policy wrote. Raises OSError if the kernel
    has no seccomp, and ValueError on a machine whose system calls are not known.
    """
    code = reading_filter(platform.machine())
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    install_filter(code)


@lru_cache(maxsize=64)
def _scorer(dataset: str, config: str) -> Any:
    return data_set(dataset, config, size=1, seed=0)
