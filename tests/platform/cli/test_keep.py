"""`platform keep` and `platform campaign` as a script uses them: answers, exit codes, refusals, the ledger."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures_home import make_grid
from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.campaign import read_campaign
from ablations.findings.fair_runs import NewRun, refuse_unfair
from ablations.home.home import Home
from ablations.study.expand import expand

BEST_RUNS = (0.400, 0.412, 0.391, 0.405, 0.398, 0.409, 0.394, 0.403)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


class Campaign:
    """A campaign `night`; called with a proposal, options and the exit code."""

    def __init__(self, home):
        self.home = home
        run("campaign", "night", "--proposals=20", f"--home={home}")

    def __call__(self, proposal, *options, code, scores=()):
        told = [f"--score={one}" for one in scores]
        text = run("keep", "night", proposal, *told, *options, f"--home={self.home}", code=code)
        assert len(text.splitlines()) <= 10
        return text


@pytest.fixture
def keep(tmp_path):
    """A campaign with eight runs of its start."""
    campaign = Campaign(tmp_path)
    campaign("start", scores=BEST_RUNS, code=0)
    return campaign


def test_a_far_better_proposal_is_kept_and_is_measured_afresh(keep):
    assert keep("wider", scores=[0.476], code=11).startswith("Run again: wider")
    text = keep("wider", scores=[0.466], code=0)
    assert text.startswith("Keep: wider.")
    assert "4 runs" in text
    assert "decided before: keep" in keep("wider", code=0)
    text = keep("best", scores=[0.462, 0.458, 0.465, 0.461], code=0)
    assert "Best so far: wider, mean 0.4615 of 4 fresh runs." in text
    shown = json.loads(run("campaign", "night", "--json", f"--home={keep.home}"))
    assert shown["best"] == "wider"
    assert shown["kept"] == ["wider"]
    kept = read_campaign(Home(keep.home), "night")
    afresh = kept.gain_afresh(kept.candidates["wider"])
    assert afresh is not None
    assert afresh.estimate == pytest.approx(0.4615 - np.mean(BEST_RUNS))
    assert kept.candidates["wider"].decision["gain"] == pytest.approx(0.471 - np.mean(BEST_RUNS))


def test_a_worse_proposal_is_discarded_and_stays_so(keep):
    keep("best", scores=[0.402], code=0)
    assert keep("broken", scores=[0.1], code=10).startswith("Discard: broken. It is worse")
    assert "decided before: worse" in keep("broken", code=10)
    result = run("keep", "night", "broken", "--json", f"--home={keep.home}", code=10)
    assert json.loads(result)["answer"] == "discard"
    with pytest.raises(AblationsError, match=r"'broken' was decided \(worse\)"):
        keep("broken", scores=[0.5], code=0)


def test_a_new_name_is_said_so_that_a_mistyped_one_shows(keep, tmp_path):
    assert "wider is a new proposal, number 1 of 20." in keep("wider", code=11)
    assert "new proposal" not in keep("wider", scores=[0.41], code=11)
    assert "widr is a new proposal, number 2 of 20." in keep("widr", scores=[0.41], code=11)
    first = Campaign(tmp_path / "other")
    with pytest.raises(AblationsError, match="'best' stands for the best so far, and the campaign has none yet"):
        first("best", scores=[0.41], code=2)
    with pytest.raises(AblationsError, match="unknown proposal 'widr' of campaign 'night'; there are no proposals"):
        first("widr", "--withdraw=0.41", code=2)
    assert "The campaign starts from wider" in first("wider", scores=[0.41], code=11)


def test_one_run_keeps_nothing_and_says_how_many_more(keep):
    told = json.loads(run("keep", "night", "wider", "--score=0.47", "--json", f"--home={keep.home}", code=11))
    assert told["answer"] == "run again"
    assert (told["runs_judged"], told["more_runs"], told["more_runs_of_best"], told["most_runs"]) == (1, 1, 0, 16)
    keep("broken", scores=[0.1], code=10)
    told = json.loads(run("keep", "night", "next", "--score=0.41", "--json", f"--home={keep.home}", code=11))
    assert (told["runs_judged"], told["more_runs"], told["more_runs_of_best"]) == (0, 0, 1)  # none since the decision


def test_identical_code_is_the_same_as_before(keep, tmp_path):
    code = tmp_path / "train.py"
    code.write_text("rate = 0.1\n")
    keep("one", f"--code={code}", code=11)
    assert keep("two", f"--code={code}", scores=[0.5], code=12).startswith("Same as before: two has the code")
    assert "two" not in read_campaign(Home(keep.home), "night").candidates
    code.write_text("rate = 0.2\n")
    keep("two", f"--code={code}", scores=[0.41], code=11)
    with pytest.raises(AblationsError, match="differ from those of its first run"):
        keep("one", f"--code={code}", scores=[0.41], code=11)


def test_unfair_runs_are_refused_with_the_difference(keep, tmp_path):
    with pytest.raises(AblationsError, match="evaluation: held-out-2, but the runs of this campaign have not said"):
        keep("other", "--condition=evaluation=held-out-2", scores=[0.5], code=2)
    with pytest.raises(AblationsError, match="machine: elsewhere, but the runs"):
        keep("other", "--condition=machine=elsewhere", scores=[0.5], code=2)
    with pytest.raises(AblationsError, match="must be a finite number"):
        keep("other", scores=["nan"], code=2)
    keep("other", scores=[0.4123456789123], code=11)
    with pytest.raises(AblationsError, match="equal to the last digit"):
        keep("third", scores=[0.4123456789123], code=2)
    assert "third" not in read_campaign(Home(keep.home), "night").candidates
    keep("third", scores=[0.41, 0.41], code=11)  # 41 of 100 answers, twice


def test_a_score_above_the_ceiling_and_evaluation_prompts_in_training_are_refused(tmp_path):
    home = f"--home={tmp_path}"
    held_out, training = tmp_path / "held_out.jsonl", tmp_path / "training.txt"
    held_out.write_text('{"prompt": "What is 2  + 3?", "answer": 5}\n{"prompt": "What is 4 + 4?"}\n')
    training.write_text("What is 1 + 1?\nWhat is 2 + 3?\n")
    run("campaign", "night", "--proposals=20", "--ceiling=1", f"--evaluation={held_out}", home)
    with pytest.raises(AblationsError, match=r"score 1\.2: above the ceiling"):
        run("keep", "night", "start", "--score=1.2", home)
    with pytest.raises(AblationsError, match=r"1 of its prompts are evaluation prompts .* 'What is 2 \+ 3\?'"):
        run("keep", "night", "start", "--score=0.5", f"--trained-on={training}", home)
    training.write_text("What is 1 + 1?\n")
    run("keep", "night", "start", "--score=0.5", f"--trained-on={training}", home, code=11)


def test_prompts_that_cannot_be_read_are_refused(tmp_path):
    home = f"--home={tmp_path / 'home'}"
    held_out, chat, binary = (tmp_path / name for name in ("held_out.jsonl", "chat.jsonl", "prompts.bin"))
    held_out.write_text('{"prompt": "What is 2 + 3?"}\n')
    chat.write_text('{"prompt": "hi"}\n{"messages": [{"role": "user", "content": "What is 2 + 3?"}]}\n')
    binary.write_bytes(b"\x80\x81")
    run("campaign", "night", "--proposals=20", f"--evaluation={held_out}", home)
    with pytest.raises(AblationsError, match=r"chat\.jsonl:2: found .* with one of the keys prompt, problem"):
        run("keep", "night", "start", "--score=0.5", f"--trained-on={chat}", home)
    with pytest.raises(AblationsError, match=r"prompts\.bin: cannot be read as prompts"):
        run("keep", "night", "start", "--score=0.5", f"--trained-on={binary}", home)
    assert not read_campaign(Home(tmp_path / "home"), "night").candidates


@pytest.mark.parametrize("option", ["--margin=inf", "--margin=nan", "--ceiling=nan", "--margin=0"])
def test_terms_that_are_no_numbers_are_refused(tmp_path, option):
    with pytest.raises(AblationsError, match=f"{option.partition('=')[0]}: found"):
        run("campaign", "night", "--proposals=20", option, f"--home={tmp_path}")


def test_a_mistyped_score_is_pointed_out_and_can_be_taken_back(keep):
    text = keep("best", scores=[40.2], code=0)
    assert "The score 40.2 lies far from all others, 0.391 to 0.412." in text
    assert f"`platform keep night start --withdraw 40.2 --home {keep.home}`" in text
    assert f"mean {np.mean(BEST_RUNS):.4f} of 8 fresh runs" in keep("start", "--withdraw=40.2", code=0)
    assert f"--withdraw 0.038 --home {keep.home}`" in keep("slip", scores=[0.038], code=10)
    with pytest.raises(AblationsError, match=r"no such score of 'slip'; its typed scores are 0\.038"):
        keep("slip", "--withdraw=0.38", code=11)
    assert keep("slip", "--withdraw=0.038", "--says=a nought too many", code=11).startswith("Run again: slip.")
    assert "lies far" not in keep("slip", scores=[0.405], code=11)
    shown = run("campaign", "night", f"--home={keep.home}")
    assert "1 undecided; 9 runs, 2 withdrawn." in shown


def test_a_score_is_withdrawn_as_it_was_typed_whatever_its_digits(keep):
    keep("best", scores=[0.12345678], code=0)
    with pytest.raises(AblationsError, match=r"--withdraw 0\.1234567: no such score .*, 0\.12345678$"):
        keep("start", "--withdraw=0.1234567", code=0)
    keep("start", "--withdraw=0.12345678", code=0)


def test_the_start_is_not_judged_against_what_has_replaced_it(keep):
    keep("wider", scores=[0.476, 0.466], code=0)
    assert "start is where the campaign starts." in keep("start", code=10)
    with pytest.raises(AblationsError, match="'start' was where the campaign started; propose it again"):
        keep("start", scores=[0.5], code=2)


def test_code_and_words_that_are_given_later_are_kept(keep, tmp_path):
    code = tmp_path / "train.py"
    code.write_text("rate = 0.1\n")
    keep("one", scores=[0.41], code=11)
    keep("one", f"--code={code}", "--says=a rate of .1", code=11)
    keep("one", f"--code={code}", code=11)
    assert "two has the code and settings of one" in keep("two", f"--code={code}", code=12)
    found = read_campaign(Home(keep.home), "night")
    assert found.candidates["one"].says == "a rate of .1"
    assert [line["kind"] for line in found.lines].count("told") == 1
    keep("three", code=11)
    assert "three has the code and settings of one" in keep("three", f"--code={code}", code=12)


def test_what_runs_write_beside_the_code_does_not_change_it(keep, tmp_path):
    folder = tmp_path / "loop"
    for name in ("train.py", "part/net.py", ".cache/a.py", "log.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    home, code = f"--home={folder / 'runs'}", f"--code={folder}"
    run("campaign", "night", "--proposals=20", home)
    run("keep", "night", "start", code, "--score=0.4", home, code=11)
    (folder / "runs" / "settings.yaml").write_text("a: 1")
    (folder / ".cache" / "a.py").write_text("2")
    (folder / "log.txt").write_text("2")
    run("keep", "night", "start", code, "--score=0.41", home, code=11)
    (folder / "part" / "net.py").write_text("2")
    with pytest.raises(AblationsError, match="differ from those of its first run"):
        run("keep", "night", "start", code, "--score=0.42", home)
    with pytest.raises(AblationsError, match=r"no file in it ends in \.py, \.sh"):
        run("keep", "night", "other", f"--code={keep.home / 'campaigns' / 'night'}", home)


def test_scores_that_never_differ_decide_nothing_and_say_so(tmp_path):
    keep = Campaign(tmp_path)
    keep("start", scores=[0.4] * 16, code=0)
    assert "All runs of a candidate score the same" in keep("wider", scores=[0.41] * 2, code=11)
    text = keep("wider", scores=[0.41] * 14, code=10)
    assert text.startswith("Discard: wider. 16 runs have not shown a gain")
    assert "discard: spent" in run("campaign", "night", f"--home={tmp_path}")


def test_proposals_that_scatter_more_are_named_since_the_promise_is_weaker(keep):
    shown = ("campaign", "night", f"--home={keep.home}")
    keep("calm", scores=[0.401, 0.409, 0.395, 0.404], code=11)
    assert "promise is weaker" not in run(*shown)
    keep("wild", scores=[0.405, 0.52, 0.30, 0.47], code=11)
    assert "Runs scatter more than the others', so the promise is weaker: wild." in run(*shown)


def test_after_runs_of_the_best_the_answer_goes_on_with_what_is_undecided(keep):
    assert keep("best", scores=[0.401], code=0).endswith("Next: propose a change, run it and the best in turn.\n")
    keep("broken", scores=[0.1], code=10)
    assert "1 more run of the best" in keep("wider", scores=[0.405], code=11)
    text = keep("best", scores=[0.402], code=0)
    assert text.endswith(f"Next: ask again about wider: `platform keep night wider --home {keep.home}`.\n")


def test_runs_after_the_decision_are_said_not_to_count(keep):
    text = keep("late", scores=[0.3, 0.5, 0.5, 0.5], code=10)
    assert "The first 1 of 4 runs decided that; the others do not count." in text
    assert keep("none", code=11).startswith("Run again: none. It has not been judged yet.")


def test_a_campaign_takes_no_more_proposals_than_its_promise_is_made_for(tmp_path):
    home = f"--home={tmp_path}"
    run("campaign", "night", "--proposals=1", home)
    run("keep", "night", "start", "--score=0.5", home, code=11)
    run("keep", "night", "one", home, code=11)
    with pytest.raises(AblationsError, match="has had its 1 proposals"):
        run("keep", "night", "two", home)


def test_the_ledger_reads_after_kill_9_of_the_command_and_two_at_once_get_one_order(keep):
    command = [sys.executable, "-m", "ablations.cli", "keep", "night", f"--home={keep.home}"]
    started = [
        subprocess.Popen([*command, name, "--score=0.41"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for name in ("a", "b", "c")
    ]
    time.sleep(2.5)
    os.kill(started[2].pid, signal.SIGKILL)
    errors = [one.communicate()[1] for one in started]
    assert [one.returncode for one in started[:2]] == [11, 11], errors
    found = read_campaign(Home(keep.home), "night")
    assert {"a", "b"} <= set(found.candidates)
    assert [len(found.candidates[name].runs) for name in ("a", "b")] == [1, 1]
    assert [line["line"] for line in found.lines] == list(range(1, len(found.lines) + 1))


def test_an_edited_score_is_found_and_named(keep):
    path = keep.home / "campaigns" / "night" / "ledger.jsonl"
    path.write_text(path.read_text().replace('"score": 0.391', '"score": 0.291'))
    with pytest.raises(AblationsError, match=r"ledger\.jsonl:5: changed since it was written"):
        keep("wider", code=11)


def test_a_campaign_is_shown(keep):
    keep("best", scores=[0.402], code=0)
    keep("broken", "--says=a rate of 3", scores=[0.1], code=10)
    page = keep.home / "night.html"
    text = run("campaign", "night", f"--to={page}", f"--home={keep.home}")
    assert "a rate of 3" in page.read_text()
    assert "1 proposal: 0 kept, 1 discarded (1 as worse), 0 undecided; 10 runs." in text
    assert "discard: worse" in text
    assert "a rate of 3" in text


def write_curves(path, level, ends=100, unit=1):
    """Four curves that rise to `level` and differ by a hundredth, read to a compute, in an own unit of compute."""
    rows = [
        f"{path.stem},{seed},{compute * unit},{level * compute / (compute + 10) + (0.003 * seed):.4f}"
        for seed in range(4)
        for compute in range(0, ends + 1, 10)
    ]
    path.write_text("\n".join(["curve,seed,compute,score", *rows]) + "\n")
    return str(path)


def test_curves_are_compared_by_their_level_at_equal_compute(tmp_path):
    home = f"--home={tmp_path / 'home'}"
    run("campaign", "night", "--proposals=20", home)
    run("keep", "night", "start", write_curves(tmp_path / "start.csv", 0.5), home)
    # The mean from 66.7 to 100 of .5 x / (x + 10), plus .0045: .5 (1 - 10 ln(110 / 76.667) / 33.333) + .0045
    fresh = read_campaign(Home(tmp_path / "home"), "night").candidates["start"].fresh
    assert np.mean([one.score for one in fresh]) == pytest.approx(0.4504, abs=5e-4)
    assert run("keep", "night", "higher", write_curves(tmp_path / "higher.csv", 0.6), home).startswith("Keep: higher")
    with pytest.raises(AblationsError, match=r"has ended at 60 of 100 compute; its log is too short"):
        run("keep", "night", "short", write_curves(tmp_path / "short.csv", 0.6, ends=60), home)
    with pytest.raises(AblationsError, match=r"ms-s0: too few evaluations up to 100 compute for a level; evaluate it"):
        run("keep", "night", "ms", write_curves(tmp_path / "ms.csv", 0.6, unit=1000), home)
    with pytest.raises(AblationsError, match=r"budget: not said, but the runs of this campaign have 100 compute"):
        run("keep", "night", "best", "--score=0.5", home)
    assert f"`platform keep night best RUNS --home {tmp_path / 'home'}`" in run("keep", "night", "best", home, code=11)
    with pytest.raises(AblationsError, match=r"run \S+: was recorded as one of higher, not copy"):
        run("keep", "night", "copy", str(tmp_path / "higher.csv"), home)
    with pytest.raises(AblationsError, match=r"unknown variant 'hihger' of sweep"):
        run("keep", "night", "best", str(tmp_path / "higher.csv"), "--variant=hihger", home)
    with pytest.raises(AblationsError, match=r"--condition .* has no effect with no --score"):
        run("keep", "night", "best", "--condition=machine=b", home)
    with pytest.raises(AblationsError, match="'my change' is not a valid proposal name"):
        run("keep", "night", "my change", home)


def write_verl_logs(folder, level, score="val-core/gsm8k/acc/mean@1"):
    """Three logs as verl writes them: 40 steps of an hour, a score every second step that rises to `level`."""
    for seed in range(3):
        rows = [
            {"step": step, "data": {"timing_s/step": 3600.0}}
            | ({} if step % 2 else {"data": {"timing_s/step": 3600.0, score: level * step / (step + 4) + 0.003 * seed}})
            for step in range(1, 41)
        ]
        folder.mkdir(exist_ok=True)
        (folder / f"{folder.name}-s{seed}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return [str(path) for path in sorted(folder.iterdir())]


def test_logs_that_are_read_otherwise_than_the_first_are_refused(tmp_path):
    home, start = f"--home={tmp_path / 'home'}", write_verl_logs(tmp_path / "start", 0.5)
    run("campaign", "night", "--proposals=20", home)
    run("keep", "night", "start", *start, "--log=verl", "--gpus=8", home, code=11)
    first = read_campaign(Home(tmp_path / "home"), "night").runs[0].conditions
    assert first["score column"] == "val-core/gsm8k/acc/mean@1"
    assert first["compute column"] == "timing_s/step with --gpus 8"
    more = write_verl_logs(tmp_path / "more", 0.51)
    with pytest.raises(
        AblationsError, match=r"compute column: timing_s/step with --gpus 16, but the runs of this .* 8;"
    ):
        run("keep", "night", "more", *more, "--log=verl", "--gpus=16", home)
    other = write_verl_logs(tmp_path / "other", 0.9, score="val-core/math/acc/mean@1")
    with pytest.raises(AblationsError, match=r"score column: val-core/math/acc/mean@1, but the runs .* val-core/gsm8k"):
        run("keep", "night", "other", *other, "--log=verl", "--gpus=8", home)
    run("keep", "night", "more", *more, "--log=verl", "--gpus=8", home, code=11)


def test_scores_of_another_number_of_answers_are_refused(tmp_path):
    home = f"--home={tmp_path / 'home'}"

    def curves(name, level, answers):
        path = tmp_path / f"{name}.csv"
        head, *rows = Path(write_curves(path, level)).read_text().splitlines()
        path.write_text("\n".join([f"{head},samples", *(f"{row},{answers}" for row in rows)]) + "\n")
        return str(path)

    run("campaign", "night", "--proposals=20", home)
    run("keep", "night", "start", curves("start", 0.5, 400), home)
    with pytest.raises(AblationsError, match=r"answers of an evaluation: 100, but the runs of this campaign have 400;"):
        run("keep", "night", "fewer", curves("fewer", 0.6, 100), home)


def test_a_campaign_that_says_nothing_of_readings_goes_on_and_holds_to_the_first_that_does():
    budget = {"budget": "40 GPU-hours"}
    earlier = NewRun(score=0.4, conditions=budget)
    first, other = (NewRun(score=0.5, conditions=budget | {"score column": name}) for name in ("acc", "acc_of_math"))
    refuse_unfair([first], [earlier], ceiling=None)
    refuse_unfair([earlier], [first], ceiling=None)
    with pytest.raises(AblationsError, match="score column: acc_of_math, but the runs of this campaign have acc;"):
        refuse_unfair([other], [earlier, first], ceiling=None)


def test_runs_of_a_sweep_that_still_train_are_said_and_awaited(tmp_path):
    sweep, home = make_grid(tmp_path), f"--home={tmp_path / 'home'}"
    (reference,) = [one for one in sweep.plan.variants if one.name == sweep.plan.reference]
    running = [sweep.run(run.id) for run in reference.runs]
    for run_of_study in expand(tmp_path / "grid.yaml").runs:
        (sweep.run(run_of_study.id).path / "recipe.json").unlink()
        sweep.run(run_of_study.id).create(run_of_study.recipe, run_of_study.seed)
    run("campaign", "night", "--proposals=20", home)

    def train_on(folder):
        folder.write_status(replace(folder.read_status(), state="running", heartbeat=time.time()))

    train_on(running[0])
    assert "1 run of it still to end: ask again then." in run("keep", "night", "start", "loss_by_batch", home, code=11)
    train_on(running[1])
    with pytest.raises(
        AblationsError, match=f"no run of it has ended; `platform status loss_by_batch --home {tmp_path / 'home'}`"
    ):
        run("keep", "night", "best", "loss_by_batch", home)


SITUATIONS = json.loads((REPOSITORY / "tests/data/agent_situations.json").read_text())


@pytest.mark.parametrize("one", SITUATIONS, ids=[one["name"] for one in SITUATIONS])
def test_a_situation_that_agents_are_examined_in_is_answered_as_written(tmp_path, one):
    home, code = f"--home={tmp_path}", tmp_path / "settings.yaml"
    run("campaign", "night", "--proposals=20", home)

    def call(proposal, scores, settings=None, condition=None):
        options = [f"--score={score}" for score in scores]
        if settings:
            code.write_text(settings)
            options.append(f"--code={code}")
        if condition:
            options.append(f"--condition={condition}")
        return CliRunner().invoke(app, ["keep", "night", proposal, *options, home])

    for before in one["before"]:
        assert call(*before).exit_code in (0, 10, 11)
    ledger = tmp_path / "campaigns" / "night" / "ledger.jsonl"
    if "edit" in one:
        ledger.write_text(ledger.read_text().replace(*one["edit"]))
    done = call(*one["ask"])
    if one["code"] == 2:
        assert isinstance(done.exception, AblationsError)
        assert str(done.exception).replace(str(ledger), "LEDGER").startswith(one["begins"])
    else:
        assert done.exit_code == one["code"], done.output
        assert done.output.startswith(one["begins"])
