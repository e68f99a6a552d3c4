"""Programs of users' own for tests: small scripts that log a curve, and the recipes of their runs."""

from pathlib import Path
from typing import Any

from scalerl.recipe.command import CommandRecipe
from scalerl.recipe.file_hash import hashes_of_code
from scalerl.run.run_folder import RunFolder

PREAMBLE = """\
import os, signal, sys, time
from ablations.log import start
run = start()
state = run.folder / "state"
step = int(state.read_text()) if state.exists() else 0
def go_on(last, pause=0.0, right=lambda step: 2 * step):
    global step
    while step <= last:
        run.log(step=step, compute=10 * step, right=right(step), of=2000)
        step += 1
        temporary = state.with_suffix(".tmp")
        temporary.write_text(str(step))
        temporary.replace(state)
        time.sleep(pause)
"""
"""Logs compute 10 per step, keeps its own checkpoint, and goes on from it."""


HELD = """\
go_on(20)
while not os.path.exists({finish!r}):
    time.sleep(0.05)
go_on({last})
"""
"""Takes 20 steps, and goes on to the last when the test is done with it."""

OTHER_TRAINER = """\
import json, os, time
path = os.environ["ABLATIONS_FOLDER"] + "/metrics.jsonl"
step = sum(1 for _ in open(path)) if os.path.exists(path) else 0
while step <= LAST:
    data = {"val-core/math/acc/mean@8": 0.2 + 0.01 * step} | ({"perf/time_per_step": 360.0} if step else {})
    with open(path, "a") as file:
        file.write(json.dumps({"step": step, "data": data}) + "\\n")
    step += 1
    time.sleep(0.05)
"""
"""Knows nothing of the platform and logs as verl does: 360 s a step. Goes on from its own log."""


def program_run(folder: Path, text: str, *, preamble: str = PREAMBLE, **settings: Any) -> RunFolder:
    """A run folder whose program is `preamble` and `text`; `settings` change the recipe."""
    script = folder / "train.py"
    script.write_text(preamble + text)
    given: dict[str, Any] = {"command": ["{python}", "train.py"], "code": ["train.py"], "evaluation": {"every": 10}}
    given |= {"configuration": {}, "overrides": {}, "folder": str(folder), "grace_s": 5.0} | settings
    code = hashes_of_code(folder, given["code"])
    recipe = CommandRecipe.model_validate(given | {"code_sha256": code})
    run = RunFolder(folder / "runs" / recipe.identity(0))
    run.create(recipe, 0)
    return run


def write_study(folder: Path, script: str, *, trainer: str = "", **keys: str) -> Path:
    """A sweep file whose program is PREAMBLE and `script`, with one more variant; `keys` are further YAML lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(PREAMBLE + script)
    (folder / "settings.yaml").write_text("rate: 0.1\noptimiser: {name: adam, betas: [0.9, 0.99]}\n")
    lines = {
        "name": "own",
        "trainer": '{type: command, command: ["{python}", train.py], code: [train.py], compute: tokens, '
        f"evaluation: {{every: 10}}{trainer}}}",
        "reference": "settings.yaml",
        "axes": "{rate: [0.2]}",
        "seeds": "[0, 1]",
        "budget": "{compute: 100}",
    } | keys
    file = folder / "own.yaml"
    file.write_text("".join(f"{key}: {value}\n" for key, value in lines.items() if value))
    return file
