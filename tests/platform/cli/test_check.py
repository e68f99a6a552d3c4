"""`platform check` as a script sees it, and its quick part at the start of a sweep and a run."""

import io
import json

import pytest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.cli.check import refuse_early
from ablations.errors import AblationsError
from ablations.study.resolve import load_resolved
from ablations.terminal.screen import Screen
from scalerl.sandbox import Sandbox, SandboxFailed
from scalerl.tasks import coding

SCALE = """
model: {{hidden: 16, layers: 1, heads: 2, mlp: 16, tokenizer: characters}}
tasks: [{{type: math, path: {path}, validation: 0.5, template: "{{question}}"}}]
warm_start: {{steps: 0}}
batch: {{prompts: 4, generations: 4}}
generation: {{thinking: 8, answer: 30}}
cluster: {{generators: 8, trainers: 2, slots: 3}}
compute_unit_gpu_hours: 1.0
"""


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def scale(tmp_path):
    """A scale file whose task has a gold answer that no box can hold in each of its rows but `good`."""

    def write(good: int, bad: int) -> str:
        rows = [{"question": f"{i} + 1", "answer": str(i + 1)} for i in range(good)]
        rows += [{"question": f"how many? {i}", "answer": r"\frac{1}{"} for i in range(bad)]
        (tmp_path / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        path = tmp_path / "mine.yaml"
        path.write_text(SCALE.format(path=tmp_path / "sums.jsonl"))
        return str(path)

    return write


def test_a_shipped_scale_passes_every_check():
    printed = run("check", "scalerl", "--scale", "smoke")
    assert "0 warnings, 0 errors" in printed
    assert "1,024 prompts to train on, 200 held out" in printed


def test_what_is_refused_ends_with_exit_code_1_and_starts_no_run(scale, tmp_path):
    where = scale(good=10, bad=60)
    assert "check the column of the answers" in run("check", "scalerl", "--scale", where, "--quick", code=1)
    home = tmp_path / "home"
    with pytest.raises(AblationsError, match=r"nothing was started: answers, math: 10 of 70 written answers"):
        run("train", "scalerl", "--scale", where, "--home", str(home))
    sweep = tmp_path / "study.yaml"
    sweep.write_text(f"name: study\nreference: scalerl\nseeds: [0]\nscale: {where}\naxes: {{logits: [bf16]}}\n")
    with pytest.raises(AblationsError, match=r"nothing was started: answers, math: 10 of 70 written answers"):
        run("sweep", str(sweep), "--home", str(home))
    assert not any(home.glob("*/*"))


def test_a_missing_sandbox_is_refused_here_and_a_warning_for_runs_that_train_elsewhere(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise SandboxFailed("no namespaces")

    row = {"question": "add", "tests": ["assert add(1, 2) == 3"], "solution": "def add(a, b):\n    return a + b"}
    (tmp_path / "code.jsonl").write_text("".join(json.dumps(row | {"question": f"add {i}"}) + "\n" for i in range(60)))
    path = tmp_path / "mine.yaml"
    settings = SCALE.replace("type: math", "type: code").format(path=tmp_path / "code.jsonl")
    path.write_text(settings)
    recipe = load_resolved("scalerl", str(path))
    monkeypatch.setattr(Sandbox, "run", fail)
    monkeypatch.setattr(coding, "usable_sandbox", Sandbox)  # one that has not been found yet
    with pytest.raises(AblationsError, match=r"nothing was started: sandbox, isolation: .*cannot isolate programs"):
        refuse_early({"scalerl": recipe}, Screen(), whole="platform check code.yaml")
    out = Screen(file=io.StringIO(), width=200)
    refuse_early({"scalerl": recipe}, out, whole="platform check code.yaml", trains_here=False)
    assert "warning: sandbox, isolation" in out.file.getvalue()
    assert "To list every affected row, run `platform check code.yaml`." in out.file.getvalue()
    assert "code: not examined: this machine cannot run the task's programs" in out.file.getvalue()


def test_a_learning_rate_that_ends_before_the_budget_is_refused_as_the_sweep_refuses_it(tmp_path):
    file = tmp_path / "falling.yaml"
    variants = "{falling: {optimiser: {schedule: {type: cosine, horizon: 0.4}}}}"
    file.write_text(
        f"name: falling\nreference: scalerl\nseeds: [0]\nscale: smoke\nbudget: {{compute: 0.5}}\nvariants: {variants}\n"
    )
    found = json.loads(run("check", str(file), "--quick", "--json", code=1))
    (refused,) = [one for one in found["checks"] if one["check"] == "learning rate"]
    assert refused["variants"] == ["falling"]
    assert refused["found"].startswith("optimiser.schedule.horizon 0.4 is below the budget of 0.5")
