"""Two optimiser steps on a task set of verifiers 0.4.0, whose own agent asks the policy.

    python benchmarks/verifiers_agent.py VENV

VENV is an environment with `pip install verifiers==0.4.0 uv`. The task set is offline; its agent is the harness `null`.
"""

import json
import sys
import tempfile
from pathlib import Path

import yaml

from ablations.study.resolve import load_resolved
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train

TASKSET = """
import verifiers.v1 as vf


class EchoTask(vf.Task[vf.TaskData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def distinct(self, trace: vf.Trace) -> float:
        return len(set(trace.last_reply or "")) / 8


class EchoTaskset(vf.Taskset[EchoTask, vf.TasksetConfig]):
    def load(self):
        yield EchoTask(vf.TaskData(name="echo", prompt="say"), self.config.task)


__all__ = ["EchoTaskset"]
"""
AGENT = """
import json, os, subprocess, sys, tempfile
from pathlib import Path

bin = sys.argv[1]
player = {"client.type": "eval", "client.base-url": os.environ["OPENAI_BASE_URL"], "harness.id": "null"}
player |= {"client.api-key-var": "OPENAI_API_KEY", "runtime.type": "subprocess"}
options = [part for name, value in player.items() for part in (f"--env.agent.{name}", value)]
with tempfile.TemporaryDirectory() as out:
    command = [f"{bin}/vf-eval", "echo_set", "-m", "policy", "-r", "1", "-n", "1", "--no-push", "--output-dir", out]
    env = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "PYTHONPATH": "."}
    subprocess.run([*command, *options], env=env, check=True, stdout=sys.stderr)
    [episode] = [json.loads(line) for line in next(Path(out).rglob("traces.jsonl")).open()]
reward = sum(one["score"] for one in episode["traces"][0]["rewards"].values())
print(json.dumps({"reward": reward}))
"""
SCALE = {
    "model": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"},
    "warm_start": {"steps": 0},
    "batch": {"prompts": 1, "generations": 3},
    "generation": {"thinking": "none", "answer": 8},
    "evaluation": {"every": 9.0, "samples": 1},
    "cluster": {"generators": 3, "trainers": 1, "slots": 1, "parameters_stand_for": 1e6, "tokens_stand_for": 1000},
    "compute_unit_gpu_hours": 1.0,
    "threads": 1,
    "resources": {"time_min": 10, "mem_gb": 2},
}


def main() -> None:
    """Train, and print the rows of the steps."""
    folder, venv = Path(tempfile.mkdtemp()), Path(sys.argv[1]).absolute()
    (folder / "echo_set.py").write_text(TASKSET)
    (folder / "agent.py").write_text(AGENT)
    program = {"type": "program", "command": ["{python}", "agent.py", f"{venv}/bin"], "code": ["echo_set.py"]}
    task = {"type": "episodes", "environment": program, "turns": 2, "train": 4, "validation": 2, "time_limit_s": 120}
    (folder / "scale.yaml").write_text(yaml.safe_dump({**SCALE, "tasks": [task]}))
    recipe = load_resolved("scalerl", str(folder / "scale.yaml"), ["length_control.type=none"])
    run = RunFolder(folder / "run")
    run.create(recipe, 0)
    train(run.path, budget_gpu_hours=0.08, warm_starts=folder)
    for row in read_rows(run.metrics, kind="train"):
        print(
            json.dumps({name: row[name] for name in ("step", "reward_mean", "grad_norm", "mismatch_max", "outcomes")})
        )


if __name__ == "__main__":
    main()
