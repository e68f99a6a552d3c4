"""Which environments train by their name alone, one optimiser step of each, and whether 16 episodes disturb each other.

    python benchmarks/environments.py                          # whatever is installed; half an hour for both libraries
    python benchmarks/environments.py --only textarena:Wordle  # ids that contain a word

Every single-player id of TextArena, every game of GEM, the game of this package and a class in a file of one's own
trains one step of the smallest model, on four episodes of two turns whose answers are random characters. Then 16
episodes are played beside each other in one process, turn by turn, with other draws from `random` in between, and
compared with the same episodes one after the other; `same` counts those whose texts are equal to the last letter. Each
id has a process and a time limit of its own; processes are forked from one that has imported the libraries, so their
seconds (two to four) are not in the figures. Writes `results/environments.json`.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from record import write_record

from scalerl.environments import hosting
from scalerl.environments.host import EnvironmentCall, Host, serve
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.episodes import ENVIRONMENT_LIBRARIES, OwnEnvironment
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

LIMIT_S = 120.0
"""Time for one id, its step and its 32 episodes together."""
SEEDS, TURNS = 16, 6
OWN_GAME = """\
import random

from scalerl.environments import Reply


class Doubler:
    def start(self, seed, row):
        self.number = random.randint(1, 9)
        return str(self.number)

    def act(self, text):
        if text.strip() != str(2 * self.number):
            return Reply(f"no, {2 * self.number}", reward=-1.0, end="lost")
        self.number *= 2
        return Reply(str(self.number), reward=0.1)
"""
PROCESSES = multiprocessing.get_context("forkserver")
IMPORTED = ("scalerl.run.loop", "textarena", "gem", "scalerl.environments.host")
"""Modules that every process has, where they are installed."""


class ForkedHost:
    """The process of environments in place of the one that imports its library first; as much of a Popen as is used."""

    def __init__(self, arguments: list[str], **_: Any) -> None:
        (asked, ask), (answer, answered) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.dup2(asked, 0)
                os.dup2(answered, 1)
                for descriptor in (asked, ask, answer, answered):
                    os.close(descriptor)
                serve(int(arguments[-1]))
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answered)
        self.stdin, self.stdout = os.fdopen(ask, "wb"), os.fdopen(answer, "rb")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="ids that contain this")
    options = parser.parse_args()
    PROCESSES.set_forkserver_preload([name for name in IMPORTED if find_spec(name)])
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "my_games.py").write_text(OWN_GAME)
        rows = []
        for name in [name for name in all_names() if options.only in name]:
            rows.append({"environment": name, **within_limit(name, Path(home))})
            print(json.dumps(rows[-1]), flush=True)
    print(table(rows))
    if not options.only:
        write_record("environments", {"limit_s": LIMIT_S, "versions": versions(), "rows": rows})


def versions() -> dict[str, str]:
    """Installed libraries of environments."""
    found = {}
    for library in ENVIRONMENT_LIBRARIES.values():
        try:
            found[library.package] = version(library.package)
        except PackageNotFoundError:
            continue
    return found


def all_names() -> list[str]:
    """Names of environments whose libraries are installed, and `own` for the class in a file."""
    names = ["guess", "own"]
    if "textarena" in versions():
        ids = import_module("textarena.envs.registration").ENV_REGISTRY
        names += [f"textarena:{name}" for name in ids if f"{name}-raw" in ids and is_single(ids[name].entry_point)]
    if "gem-llm" in versions():
        ids = import_module("gem.envs.registration").ENV_REGISTRY
        names += [f"gem:{name}" for name in ids if name.startswith("game:")]
    return names


def is_single(entry_point: str) -> bool:
    """True if a game of TextArena keeps its state in that of a single player."""
    package, _, module = entry_point.partition(":")[0].rpartition(".")
    spec = find_spec("textarena")
    assert spec
    assert spec.origin
    path = Path(spec.origin).parents[1] / package.replace(".", "/") / f"{module}.py"
    return path.is_file() and "SinglePlayerState(" in path.read_text()


def within_limit(name: str, home: Path) -> dict[str, Any]:
    """What is found about one id, in a process that is ended after `LIMIT_S`."""
    answer, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=examined, args=(name, home, theirs))
    process.start()
    theirs.close()
    found: dict[str, Any] = {"reason": f"took more than {LIMIT_S:g} s"}
    until = time.monotonic() + LIMIT_S
    try:
        while answer.poll(max(0.0, until - time.monotonic())):
            found = answer.recv()
    except EOFError:
        pass
    process.kill()
    process.join()
    return found


def examined(name: str, home: Path, answer: Any) -> None:
    """Main function of that process: says what is known after the step, and again after the episodes."""
    hosting.subprocess = SimpleNamespace(Popen=ForkedHost, PIPE=subprocess.PIPE)  # pyright: ignore[reportAttributeAccessIssue]
    environment: Any = name
    if name == "own":
        environment = OwnEnvironment(function="my_games:Doubler", folder=str(home))
    found: dict[str, Any] = {}
    try:
        found |= one_step(environment, home / re.sub(r"\W", "_", name))
        answer.send({**found, "reason": "its episodes take too long"})
        found["same"] = same_episodes(environment)
    except Exception as error:  # whatever an environment raises is its row of the table
        found["reason"] = f"{type(error).__name__}: {error}"
    answer.send(found)


def one_step(environment: Any, path: Path) -> dict[str, Any]:
    """Train one optimiser step; the seconds of it all, and of the step with its episodes."""
    from scalerl.run import loop  # seconds to import
    from scalerl.run.train import train

    began = time.perf_counter()
    task = {"type": "episodes", "environment": environment, "name": "it", "turns": 2, "context_tokens": 32_000}
    recipe = ResolvedRecipe.model_validate(
        {
            "model": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"},
            "tasks": [{**task, "train": 4, "validation": 2}],
            "warm_start": {"steps": 0},
            "batch": {"prompts": 2, "generations": 2},
            "generation": {"thinking": "none", "answer": 8},
            "length_control": {"type": "none"},
            "zero_variance": "keep",
            "cluster": {"generators": 2, "trainers": 2, "slots": 2, "parameters_stand_for": 1e6},
        }
    )
    folder = RunFolder(path)
    folder.create(recipe, 0)
    took: list[float] = []

    class OneStep(loop.Run):
        """Ends after the first optimiser step."""

        def advance(self, budget_gpu_hours: float) -> None:
            before = time.perf_counter()
            self.cluster.start()
            while self.cluster.learner.version < 1:
                self._log(loop.SCHEDULES[self.recipe.off_policy.type](self.cluster))
            took.append(time.perf_counter() - before)

    loop.Run = OneStep
    train(path, budget_gpu_hours=1.0, warm_starts=path)
    if not list(read_rows(folder.metrics, "train")):
        raise ValueError("no step was logged")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "step_seconds": round(took[0], 2),
    }


def same_episodes(environment: Any) -> int:
    """Number of 16 episodes whose texts are the same beside each other and one after the other."""
    alone = [said for seed in range(SEEDS) for said in played(environment, [seed])]
    return sum(one == other for one, other in zip(alone, played(environment, list(range(SEEDS))), strict=True))


def played(environment: Any, seeds: list[int]) -> list[list[str]]:
    """Texts of episodes in one process, each turn of all before the next turn of the first."""
    host = Host(environment, {}, LIMIT_S / 2)
    starts = [host.answer(EnvironmentCall(what="start", key=seed, seed=seed)) for seed in seeds]
    if failed := [reply.text for reply in starts if reply.end]:
        raise ValueError(failed[0])
    said = {seed: [reply.text] for seed, reply in zip(seeds, starts, strict=True)}
    for turn in range(TURNS):
        for seed in list(said):
            random.random()
            if said[seed][-1] != "END":
                move = move_of(said[seed][0], seed, turn)
                reply = host.answer(EnvironmentCall(what="act", key=seed, text=move))
                said[seed] += [f"{reply.text} {reply.reward} {reply.end}", *(["END"] if reply.end else [])]
    return list(said.values())


def move_of(rules: str, seed: int, turn: int) -> str:
    """One of the moves that the rules show in brackets or in a box."""
    moves = re.findall(r"\\boxed\{[^{}]{1,20}\}|\[[^\[\]]{1,20}\]", rules) or ["1"]
    return moves[(7 * seed + turn) % len(moves)]


def in_short(reason: str) -> str:
    """The reason without the names of task, environment and seed."""
    reason = re.sub(r"TaskError: task 'it': |environment '[^']*': | of seed \d+|\*{3,} ", "", reason)
    return reason.partition(". ")[0]


def table(rows: list[dict[str, Any]]) -> str:
    """Lines of Markdown: how many ids of each library train, and those that do not."""
    lines = [
        "| library | ids | train a step | s each | 16 episodes the same | not, and why |",
        "|---|---|---|---|---|---|",
    ]
    for library in dict.fromkeys(row["environment"].partition(":")[0] for row in rows):
        mine = [row for row in rows if row["environment"].partition(":")[0] == library]
        took = sorted(row["seconds"] for row in mine if "seconds" in row)
        same = sum(row.get("same") == SEEDS for row in mine)
        tried = sum("same" in row for row in mine)
        why = Counter(in_short(row["reason"]) for row in mine if "reason" in row)
        reasons = "; ".join(f"{number} x {reason}" for reason, number in why.items())
        span = f"{took[0]} to {took[-1]}" if took else ""
        lines.append(f"| {library} | {len(mine)} | {len(took)} | {span} | {same} of {tried} | {reasons} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
