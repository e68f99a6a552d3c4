"""The page of a run: what is wrong with it and what to do, its figures, and what its policy writes."""

import json
import re
import shutil
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dashboard.app_pages import figures_of, html_of, messages, open_page
from fixtures_home import BUDGET, collapse, make_home, planned_run, settled, train_row, write_run, write_state

from ablations.findings.results import read_results
from ablations.home.notes import notes_of_run
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.study.resolve import load_resolved
from ablations_dashboard.drawings.run import thinned_rows
from ablations_dashboard.reading.run_log import warning_spans
from ablations_dashboard.sections.rollouts import rollout_html
from ablations_dashboard.sections.why import explaining, steps_of
from ablations_dashboard.views import run as page_of_run

HOSTILE = '<img src="https://elsewhere.example/x.png"><script>alert(1)</script>**bold** \x1b[31m'
ROLLOUT = {
    "kind": "trained",
    "step": 80,
    "compute_gpu_hours": 2000.0,
    "task": "k_smallest",
    "prompt_id": "3:k9a2",
    "verdict": "wrong",
    "reward": -1.0,
    "tokens": 9,
    "truncated": True,
    "prompt": [{"text": "3:k9a2<think>", "tokens": 7}],
    "thinking": [
        {"text": "9a\nk", "tokens": 3, "version": 76},
        {"left_out": 11820},
        {"text": "</think>", "tokens": 1, "version": 77, "forced": True},
    ],
    "answer": [{"text": f"29{HOSTILE}", "tokens": 5, "version": 79}],
    "right_answer": "29a<b>",
    "advantage": None,
    "masked": "truncated",
}
HELD_OUT = {**ROLLOUT, "kind": "held_out", "verdict": "right", "reward": 1.0, "truncated": False}
HELD_OUT = {name: value for name, value in HELD_OUT.items() if name not in ("advantage", "masked")}

EPISODE = {
    "kind": "trained",
    "step": 80,
    "compute_gpu_hours": 2000.0,
    "task": "guess",
    "prompt_id": "17",
    "verdict": "unparsable",
    "dropped": "",
    "reward": -1.0,
    "tokens": 6,
    "truncated": False,
    "prompt": [{"text": "1-16", "tokens": 4}],
    "turns": [
        {
            "turn": 1,
            "thinking": [{"text": "half</think>", "tokens": 2, "version": 77, "forced": True}],
            "answer": [{"text": "8", "tokens": 1, "version": 78}],
            "reward": 0.1,
            "advantage": 0.34,
        },
        {"left_out": 40},
        {
            "turn": 42,
            "environment": [{"text": f"higher{HOSTILE}", "tokens": 1}],
            "thinking": [],
            "answer": [{"text": "99", "tokens": 2, "version": 79}],
            "reward": -1.0,
            "advantage": -0.5,
        },
    ],
    "others": [
        [
            {
                "turn": 1,
                "environment": [{"text": f"in short{HOSTILE}", "tokens": 3}],
                "thinking": [],
                "answer": [{"text": "4", "tokens": 1, "version": 80}],
                "reward": 0.0,
            }
        ],
        [{"left_out": 2}],
    ],
    "end": "rules_broken",
    "why": "a number from 1 to 16<b>",
    "right_answer": None,
    "advantage": None,
    "masked": None,
}


def open_run(monkeypatch, sweep, variant="scalerl", **query):
    return open_page(monkeypatch, sweep.home.path, "run", sweep="loo", run=planned_run(variant, 0).id, **query)


NO_WARNING = "None of the health rules has warned"


def captions(page):
    return " ".join(one.value for one in page.caption)


def write_rollouts(sweep, rows, variant="scalerl"):
    path = sweep.run(planned_run(variant, 0).id).rollouts
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_run_that_is_done_shows_its_figures_and_no_warning(monkeypatch, finished):
    page = open_run(monkeypatch, finished)
    assert page.title[0].value == r"scalerl\-s0"
    assert page.markdown[0].value.startswith(
        ":green-badge[done] · pass rate **0.600** · 2,000 of 2,000 modelled GPU-hours · step 80"
    )
    assert [one.value for one in page.header] == list(page_of_run.SECTIONS)
    assert NO_WARNING in captions(page)
    titles = [figure["layout"]["yaxis"].get("title", {}).get("text", "") for figure in figures_of(page)]
    assert titles == ["held-out pass rate", "", "", ""]  # why, all metrics, hours
    assert "This run has kept no sample rollouts." in messages(page)


def test_the_pass_rate_is_drawn_first_and_beside_it_what_explains_it(monkeypatch, finished):
    rate, why, everything, *_ = figures_of(open_run(monkeypatch, finished))
    (line,) = rate["data"]
    assert line["x"][0] == 0.0
    assert line["y"] == [row["pass_rate"] for row in rows_of(finished) if row["kind"] == "eval"]
    assert headings(why) == ["entropy, nats per token", "distance of trainer and generator, nats per token"]
    assert {"entropy", "loss", "mismatch", "staleness_mean", "tokens_per_s"} < set(headings(everything))
    # one axis is zoomed with all others
    axes = [axis for name, axis in everything["layout"].items() if name.startswith("xaxis")]
    assert len(axes) == len(headings(everything))
    assert {axis.get("matches") for axis in axes[1:]} == {"x"}


def test_the_metric_of_a_rule_that_has_warned_comes_first_and_at_most_three_are_shown():
    logged = ["compute_gpu_hours", "entropy", "ess", "mismatch", "truncated", "zero_variance"]
    assert explaining([], logged) == ["entropy", "truncated", "zero_variance"]
    assert explaining(["ess", "skipped"], logged) == ["ess", "zero_variance", "entropy"]
    assert explaining([], ["compute_gpu_hours", "step", "accuracy"]) == ["accuracy"]


def rows_of(sweep):
    return [json.loads(line) for line in sweep.run(planned_run("scalerl", 0).id).metrics.read_text().splitlines()]


def headings(figure):
    return [one["text"] for one in figure["layout"]["annotations"]]


def train_rows(entropies):
    """Rows of optimiser steps with this entropy and a pass rate of a half."""
    rng = np.random.default_rng(0)
    rows = [train_row(25.0 * step, rng) for step in range(1, len(entropies) + 1)]
    return [row | {"entropy": nats, "pass_rate": 0.5} for row, nats in zip(rows, entropies, strict=True)]


def test_a_warning_stands_with_the_steps_at_which_it_held(monkeypatch, tmp_path):
    """The mean of 20 steps is below 0.02 once 20 of them in a row are 0.01, at step 70, and no longer at step 81: with
    one of 0.5 it is (19 x 0.01 + 0.5) / 20 = 0.0345.
    """
    sweep = make_home(tmp_path)
    rows = train_rows([0.5] * 50 + [0.01] * 30 + [0.5] * 20)
    evaluations = [row for row in rows_of(sweep) if row["kind"] == "eval"]
    log = sweep.run(planned_run("scalerl", 0).id).metrics
    log.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *evaluations]))
    page = open_run(monkeypatch, sweep)
    held = r"* steps 70 to 80\: entropy is down to 0\.010 nats per token"
    assert held in captions(page)
    rate, why, *_ = figures_of(page)
    assert headings(why)[0] == "entropy, nats per token"
    assert [shape["x0"] for shape in rate["layout"]["shapes"]] == [25.0 * 70]
    assert NO_WARNING not in captions(page)


def test_the_likeliest_cause_stands_above_the_figures_with_what_to_change(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    rows = [row | {"survivors": 1} for row in train_rows([0.5] * 60 + [0.01] * 60)]
    evaluations = [row for row in rows_of(sweep) if row["kind"] == "eval"]
    log = sweep.run(planned_run("scalerl", 0).id).metrics
    log.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *evaluations]))
    page = open_run(monkeypatch, sweep)
    (box,) = page.warning
    assert re.match(r"Entropy gone \\\(sure since step \d+, the last \d+% of the compute\\\)", box.value), box.value
    assert r"To change\:" in box.value
    assert NO_WARNING not in captions(page)


def test_without_the_columns_of_the_trainer_nothing_is_said_of_warnings(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    rows = [{name: value for name, value in row.items() if name != "skipped"} for row in rows_of(sweep)]
    log = sweep.run(planned_run("scalerl", 0).id).metrics
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = open_run(monkeypatch, sweep)
    assert not page.warning
    assert NO_WARNING not in captions(page)


def test_a_rule_that_warns_twice_has_two_episodes_and_rows_of_programs_have_none():
    rows = train_rows([0.5] * 40 + [0.01] * 25 + [0.5] + [0.01] * 25)
    spans = warning_spans(rows)
    assert [(one.rule, one.first, one.last) for one in spans] == [
        ("entropy", 60, 65),
        ("entropy", 86, 91),
    ]
    assert steps_of(warning_spans(rows)) == "steps 60 to 65, 86 to 91"
    assert steps_of(warning_spans(rows)[:1]) == "steps 60 to 65"
    assert steps_of(warning_spans(rows) * 2) == "4 times in steps 60 to 91"
    assert warning_spans([{name: value for name, value in row.items() if name != "skipped"} for row in rows]) == []


def test_a_collapse_that_a_fit_has_found_is_a_red_box(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    collapse(sweep, planned_run("loo-loss", 0).id, after=1500.0)
    read_results(settled(sweep))
    page = open_run(monkeypatch, sweep, "loo-loss")
    assert page.error[0].value.startswith("The pass rate collapsed \\(")


def stale(sweep, run_id):
    write_state(sweep.home, run_id, "running", compute=BUDGET / 2)
    folder = sweep.run(run_id)
    folder.write_status(replace(folder.read_status(), heartbeat=time.time() - 3600))


@pytest.mark.parametrize(
    ("change", "state", "said"),
    [
        (
            lambda sweep, run: write_state(sweep.home, run, "failed", message="Diverged: the loss"),
            "failed",
            (
                r"Diverged\: the loss",
                "`platform logs 000001000000 --home",
                "`platform sweep sweeps/loo.yaml --home {home}`",
            ),
        ),
        (stale, "stale", ("died without a message", "`platform sweep sweeps/loo.yaml --home {home}` resumes it")),
        (
            lambda sweep, run: shutil.rmtree(sweep.run(run).path),
            "pending",
            ("no folder", "deleted", "If nothing starts it, `platform sweep sweeps/loo.yaml --home {home}` does"),
        ),
    ],
)
def test_a_run_that_needs_something_says_why_and_which_command(monkeypatch, tmp_path, change, state, said):
    sweep = make_home(tmp_path)
    change(sweep, planned_run("loo-loss", 0).id)
    page = open_run(monkeypatch, sweep, "loo-loss")
    assert f"-badge[{state}]" in page.markdown[0].value
    assert [text for text in said if text.format(home=tmp_path) not in messages(page)] == []
    assert not page.success
    assert NO_WARNING not in captions(page)


def test_a_run_that_collapsed_is_not_called_done(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    collapse(sweep, planned_run("loo-loss", 0).id, after=1200.0, to=0.3)
    page = open_run(monkeypatch, sweep, "loo-loss")  # nothing has fitted the run before
    assert page.markdown[0].value.startswith(":red-badge[collapsed] ")
    assert r"The pass rate collapsed \(" in messages(page)


def test_a_note_is_written_on_the_page_of_its_run(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    page = open_run(monkeypatch, sweep)
    (save,) = [one for one in page.button if one.label == "Save"]
    save.click().run()
    assert "There is nothing to save" in messages(page)
    page.text_area[0].input("its disk was full")
    (tags,) = [one for one in page.text_input if one.label.startswith("Tags")]
    tags.input("odd keep")
    (save,) = [one for one in page.button if one.label == "Save"]
    save.click().run()
    assert not page.exception
    found = notes_of_run(sweep.home, planned_run("scalerl", 0).id)
    assert ([one.text for one in found.texts], found.tags) == (["its disk was full"], ("odd", "keep"))
    assert "its disk was full" in [*map(str, page.dataframe[0].value.to_numpy().ravel())]


def saved(page, note: str, tags: str = ""):
    """The page after a note is written into its form and saved."""
    page.text_area[0].input(note)
    next(one for one in page.text_input if one.label.startswith("Tags")).input(tags)
    return next(one for one in page.button if one.label == "Save").click().run()


def test_a_note_stays_in_the_form_until_it_is_saved(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    page = saved(open_run(monkeypatch, sweep), "its disk was full", "odd,keep")
    assert "a tag is one word of up to 50" in messages(page).replace("\\", "")
    assert page.text_area[0].value == "its disk was full"
    (form,) = page.get("form")
    assert not form.proto.form.clear_on_submit  # which a browser does also after an error
    page = saved(page, page.text_area[0].value, "odd keep")
    assert page.text_area[0].value == ""


def test_a_note_that_cannot_be_written_is_said_and_stays_in_the_form(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    page = open_run(monkeypatch, sweep)
    (sweep.run(planned_run("scalerl", 0).id).path / "notes.json").mkdir()
    page = saved(page, "its disk was full")
    assert not page.exception
    assert "The note is not saved" in messages(page).replace("\\", "")
    assert page.text_area[0].value == "its disk was full"


def test_a_message_begins_no_sentence_with_a_small_letter(monkeypatch, tmp_path):
    sweep = make_home(tmp_path, state="failed", fraction=0.3)
    write_state(sweep.home, planned_run("loo-loss", 0).id, "failed", compute=600.0, message="loss nan, at step 24")
    assert "The run ended before it was done: loss nan, at step 24. `platform logs" in messages(
        open_run(monkeypatch, sweep, "loo-loss")
    ).replace("\\", "")


def test_a_corrupt_log_is_named_and_leaves_the_other_sections(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    log = sweep.run(planned_run("scalerl", 0).id).metrics
    log.write_text("not a row\n" + log.read_text())
    write_rollouts(sweep, [HELD_OUT])
    page = open_run(monkeypatch, sweep)
    assert "metrics\\.jsonl\\:1\\: not a metrics row" in messages(page)
    assert len(page.header) == len(page_of_run.SECTIONS)
    assert "29" in html_of(page)


def test_an_empty_run_says_which_command_shows_its_first_step(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    sweep.run(planned_run("scalerl", 0).id).metrics.write_text("")
    page = open_run(monkeypatch, sweep)
    assert "`platform status loo --watch --home" in messages(page)
    assert "No evaluation yet" in messages(page)
    assert len(figures_of(page)) == 0


def test_an_unknown_run_in_the_url_is_not_another_run(monkeypatch, finished):
    page = open_page(monkeypatch, finished.home.path, "run", sweep="loo", run="123456789abc")
    assert "No run `123456789abc` in sweep `loo`" in page.error[0].value
    assert len(page.header) == 0


def test_rollouts_show_the_weights_of_tokens_what_was_forced_and_what_is_not_in_the_loss(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    write_rollouts(sweep, [ROLLOUT, {**ROLLOUT, "step": 40}, HELD_OUT])
    text = html_of(open_run(monkeypatch, sweep, of="trained"))
    assert (
        '<span class="v2 forced" title="1 tokens, weights of step 77, forced">&lt;/think&gt;</span><sub>77</sub>'
        in text
    )
    assert "9a\nk</span><sub>76</sub>" in text
    assert "… 11,820 tokens are not kept …" in text
    assert '<div class="part masked"><span class="name">answer</span>' in text
    assert "wrong, reward -1, 9 tokens, cut off at the token limit, not in the loss: truncated" in text


def test_a_run_of_episodes_shows_how_they_end(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    ends = {"won": 0.25, "lost": 0.75, "error": 0.0}
    rows = [row | ({"ends": ends} if row["kind"] == "train" else {}) for row in rows_of(sweep)]
    path = sweep.run(planned_run("scalerl", 0).id).metrics
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = open_run(monkeypatch, sweep)
    assert "How episodes end" in [one.value for one in page.subheader]
    lines = {line["name"]: line["y"] for figure in figures_of(page) for line in figure["data"] if "name" in line}
    assert set(lines["won"]) == {0.25}
    assert set(lines["lost"]) == {0.75}
    assert "error" not in lines


def test_an_episode_reads_as_a_conversation_with_the_reward_of_each_turn_and_its_end(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    write_rollouts(sweep, [EPISODE])
    text = html_of(open_run(monkeypatch, sweep, of="trained"))
    parts = [
        '<strong>✗ <span class="end rules_broken">rules broken</span> reward -1, 6 tokens</strong> · guess 17',
        '<div class="part said"><span class="name">environment</span>1-16</div>',
        '<div class="part turn"><span class="name">turn 1, reward 0.1, advantage +0.34: thinking</span>',
        'title="2 tokens, weights of step 77, forced">half&lt;/think&gt;</span>',
        '<div class="part turn"><span class="name">turn 1, reward 0.1, advantage +0.34: answer</span>',
        "… 40 turns are not kept …",
        '<div class="part said"><span class="name">environment</span>higher&lt;img',
        '<div class="part turn"><span class="name">turn 42, reward -1, advantage -0.50: answer</span>',
        "another conversation of the same agent",
        '<div class="part said"><span class="name">environment</span>in short&lt;img',
        '<div class="part turn"><span class="name">turn 1, reward 0: answer</span>',
        'title="1 tokens, weights of step 80">4</span>',
        "… 2 conversations are not kept …",
        '<div class="part said"><span class="name">environment</span>a number from 1 to 16&lt;b&gt; <span class="end',
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "what an environment said is hatched and never in the loss" in text
    assert "<img" not in text


def test_rollouts_of_another_step_and_kind_are_chosen_in_the_url(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    early = {**ROLLOUT, "step": 40, "prompt_id": "2:early"}
    write_rollouts(sweep, [early, ROLLOUT, HELD_OUT])
    page = open_run(monkeypatch, sweep, of="trained", rollouts="40")
    assert "2:early" in html_of(page)
    assert "3:k9a2</div>" not in html_of(page)
    page = open_run(monkeypatch, sweep, of="held_out", rollouts="40")
    assert "No rollouts of this kind at this step" in messages(page)


def test_rollouts_of_the_newest_evaluation_stand_beside_those_of_the_first_to_the_same_prompt(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    early = [{**HELD_OUT, "step": 0, "verdict": "wrong", "prompt_id": name} for name in ("2:b", "3:a")]
    late = [{**HELD_OUT, "step": 80, "prompt_id": name} for name in ("3:a", "2:b")]
    write_rollouts(sweep, [*early, *late])
    text = html_of(open_run(monkeypatch, sweep))
    places = [text.index(f"{verdict}, reward 1, 9 tokens</strong> · k_smallest {name}") for verdict, name in BESIDE]
    assert places == sorted(places)
    assert text.count('<div class="at">step 0</div>') == text.count('<div class="at">step 80</div>') == 2
    assert '<span class="name">right answer</span>29a&lt;b&gt;' in text


TASK = "Task: given 3:k9a2, write the three smallest symbols, 29a."
BESIDE = [("wrong", "3:a"), ("right", "3:a"), ("wrong", "2:b"), ("right", "2:b")]


def test_what_a_policy_writes_is_no_markup():
    text = rollout_html(ROLLOUT)
    assert "<img" not in text
    assert "<script" not in text
    assert "&lt;img src=&quot;https://elsewhere.example/x.png&quot;&gt;" in text
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_a_run_shows_its_recipe_and_where_it_differs_from_the_reference(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    recipes = {
        "scalerl": load_resolved("scalerl", "smoke"),
        "loo-loss": load_resolved("scalerl", "smoke", ["batch.prompts=12"]),
    }
    variants = tuple(
        PlannedVariant(name=name, overrides={}, runs=(PlannedRun(seed=0, id=recipe.identity(0)),))
        for name, recipe in recipes.items()
    )
    sweep = replace(sweep, plan=replace(sweep.plan, variants=variants))
    sweep.write_plan()
    for recipe in recipes.values():
        write_run(sweep.home, recipe.identity(0), (0.6, 1.9, 300.0))
        folder = sweep.run(recipe.identity(0))
        (folder.path / "recipe.json").unlink()
        folder.create(recipe, 0)
    page = open_page(monkeypatch, tmp_path, "run", sweep="loo", run=recipes["loo-loss"].identity(0))
    frame = next(table.value for table in page.dataframe if "setting" in table.value)
    before = str(recipes["scalerl"].batch.prompts)
    assert frame.values.tolist() == [["batch.prompts", before, "12"]]
    assert "max_ratio: 5.0" in page.code[-1].value
    assert TASK in captions(page).replace("\\", "")
    assert TASK in captions(open_page(monkeypatch, tmp_path, "compare", sweep="loo")).replace("\\", "")
    page = open_page(monkeypatch, tmp_path, "run", sweep="loo", run=recipes["scalerl"].identity(0))
    assert "This run belongs to the reference variant." in "".join(one.value for one in page.markdown)


def test_the_log_shows_its_last_lines_with_control_characters_by_their_number(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    log = sweep.run(planned_run("scalerl", 0).id).log(1)
    log.parent.mkdir()
    log.write_text("".join(f"step {number}\n" for number in range(100)) + "\x1b[31mred\n")
    page = open_run(monkeypatch, sweep)
    shown = page.code[0].value.splitlines()
    assert len(shown) == page_of_run.LOG_LINES
    assert shown[-2:] == ["step 99", "\\x1b[31mred"]


def test_mlflow_is_linked_where_it_has_the_run(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    run = planned_run("scalerl", 0).id
    assert "`platform sync loo --home" in messages(open_run(monkeypatch, sweep))
    known = {"mlflow_id": "8c1f", "num_rows": 120}
    content = {"tracking_uri": "https://mlflow.example", "experiment_id": "7", "runs": {run: known}}
    (sweep.folder / "sync.json").write_text(json.dumps(content))
    page = open_run(monkeypatch, sweep)
    assert page.get("link_button")[0].proto.url == "https://mlflow.example/#/runs/8c1f"


def test_a_long_run_is_drawn_by_means_with_the_range_of_what_they_stand_for():
    rows = pd.DataFrame({"step": [1, 2, 3, 4, 5], "loss": [3.0, 1.0, float("nan"), 2.0, 6.0]})
    assert thinned_rows(rows, "step", "loss", 2).to_dict("list") == {
        "step": [1.5, 4.5], "mean": [2.0, 4.0], "least": [1.0, 2.0], "most": [3.0, 6.0]
    }  # fmt: skip
