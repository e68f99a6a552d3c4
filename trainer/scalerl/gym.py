"""Problems of the library `reasoning-gym`, and its own scores of answers.

>>> problems("chain_sum", '{"max_terms": 2}', size=1, seed=3)[0]["answer"]
'58'
"""

import dataclasses
import hashlib
import json
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scalerl.errors import Rejected

MOST_DRAWS = 20
"""Draws per wanted problem after which a data set counts as exhausted."""
OURS = ("size", "seed")
"""Settings of the task that also exist in the library's configurations."""


class GymError(Rejected):
    """The library is missing, or cannot make the problems."""


def problems_sha256(dataset: str, config: str, size: int, seed: int) -> str:
    """Hash of all questions and answers; raises GymError if the library cannot make that many."""
    made = problems(dataset, config, size, seed)
    pairs = [[problem["question"], problem["answer"]] for problem in made]
    return hashlib.sha256(json.dumps(pairs, ensure_ascii=False, default=str).encode()).hexdigest()


@lru_cache(maxsize=8)
def problems(dataset: str, config: str, size: int, seed: int) -> tuple[Mapping[str, Any], ...]:
    """The first `size` different problems, with the library's keys question, answer and metadata.

    `config` is a JSON object. Some data sets draw from sets or from Python's own generator. So the problems are made in
    a process of their own, where the order of sets and that generator are fixed. Raises GymError with its reason.
    """
    path = os.pathsep.join(path for path in sys.path if path)
    made = subprocess.run(
        [sys.executable, "-P", "-c", "from scalerl.gym import write_problems; write_problems()"],
        input=json.dumps([dataset, config, size, seed]).encode(),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
        check=False,
    )
    if made.returncode:
        raise GymError(f"data set {dataset}: the problem generator exited with code {made.returncode}")
    found = pickle.loads(made.stdout)
    if isinstance(found, str):
        raise GymError(found)
    return found


def write_problems() -> None:
    """Main function of that process: reads the request as JSON, writes the problems or the error as a pickle."""
    output = os.dup(1)
    os.dup2(2, 1)  # what the library prints
    random.seed(0)
    try:
        found: Any = draw_problems(*json.load(sys.stdin))
    except GymError as error:
        found = str(error)
    with os.fdopen(output, "wb") as file:
        pickle.dump(found, file)


def draw_problems(dataset: str, config: str, size: int, seed: int) -> tuple[Mapping[str, Any], ...]:
    """The problems, made in this process; raises GymError if MOST_DRAWS times as many draws give too few."""
    most = MOST_DRAWS * size
    source = data_set(dataset, config, size=most, seed=seed)
    found: dict[str, Mapping[str, Any]] = {}
    for draw in range(most):
        try:
            problem = source[draw]
        except Exception as error:  # each data set of the library raises its own
            raise GymError(f"data set {dataset}: draw {draw} failed: {type(error).__name__}: {error}") from error
        found.setdefault(problem["question"], problem)
        if len(found) == size:
            return tuple(found.values())
    raise GymError(
        f"data set {dataset} gives {len(found):,} different problems in {most:,} draws, but size is {size:,}; lower "
        f"size, or widen config"
    )


def data_set(dataset: str, config: str, *, size: int, seed: int) -> Any:
    """The library's data set; raises GymError with the known names if the name or a key of `config` is unknown."""
    try:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS
    except ImportError as error:
        raise GymError(f"a task of type reasoning_gym needs the library ({error}): pip install '.[tasks]'") from None
    if dataset not in DATASETS:
        raise GymError(f"found dataset {dataset!r}; reasoning-gym has {', '.join(sorted(DATASETS))}")
    keys = [field.name for field in dataclasses.fields(DATASETS[dataset][1]) if field.name not in OURS]
    given = json.loads(config)
    if unknown := [name for name in given if name not in keys]:
        has = f"data set {dataset} has {', '.join(keys) or 'no keys'}"
        right = "write size and seed beside config" if unknown[0] in OURS else has
        raise GymError(f"found config key {unknown[0]!r}; {right}")
    try:
        return reasoning_gym.create_dataset(dataset, **given, size=size, seed=seed)
    except Exception as error:  # configurations assert what they need
        reason = str(error) or type(error).__name__
        raise GymError(f"data set {dataset} rejects config {config}: {reason}") from error
