"""`platform audit`: what it prints of kept answers that a second reading judges differently."""

import json

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app

KEPT = {
    "kind": "held_out", "step": 40, "compute_gpu_hours": 33.1, "task": "chain_sum", "reward": 1.0, "tokens": 3,
    "truncated": False, "right_answer": "62", "dropped": "",
}  # fmt: skip


@pytest.fixture
def home(tmp_path):
    sweep = make_home(tmp_path)
    answers = [("62", "right"), ("61", "right"), ("62", "wrong"), ("x^2", "wrong")]
    rows = [
        KEPT | {"prompt_id": f"p{place}", "verdict": verdict, "answer": [{"text": text, "tokens": 3, "version": 1}]}
        for place, (text, verdict) in enumerate(answers)
    ]
    sweep.run(sweep.plan.runs[0].id).rollouts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_the_answers_that_the_verifier_paid_for_come_first(home):
    printed = CliRunner().invoke(app, ["audit", "loo", "--home", str(home)], env={"COLUMNS": "120"}).stdout
    head, _, _, *rows = printed.splitlines()
    assert head == "loo: a second reading judges 2 of 3 kept answers differently; it cannot judge 1 more."
    assert [row.split()[3:6] for row in rows] == [["p1", "right", "wrong"], ["p2", "wrong", "right"]]


def test_scripts_get_all_of_it_and_a_damaged_log_is_said(home):
    document = json.loads(CliRunner().invoke(app, ["audit", "loo", "--json", "--home", str(home)]).stdout)
    assert (document["num_kept"], document["num_judged"], document["unread"]) == (4, 3, {})
    assert document["disagreements"][0] == {
        "run": "scalerl-s0", "step": 40, "kind": "held_out", "task": "chain_sum", "prompt_id": "p1",
        "verdict": "right", "second": "wrong", "stated": "61", "right_answer": "62",
    }  # fmt: skip
    next(home.glob("runs/*/rollouts.jsonl")).write_text("{]\n{}\n")
    result = CliRunner().invoke(app, ["audit", "loo", "--home", str(home)], env={"COLUMNS": "200"})
    assert "scalerl-s0: its log cannot be read" in result.output
