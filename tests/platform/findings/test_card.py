"""The card of a study whose curves are generated: claims judged, written and listed."""

import dataclasses
import json

import pytest
from fixtures_home import changed, make_home

from ablations.cli.reproduce import written_card
from ablations.cli.studies import outcomes_here
from ablations.errors import AblationsError
from ablations.findings.claim_card import WrittenCard, card_of, order_text, read_card, read_cards, sign_text
from ablations.findings.results import read_results
from ablations.findings.scale_ladder import scale_ladder
from ablations.report.documents.claim_card import (
    card_document,
    card_notes,
    claims_table,
    cost_sentence,
    tally_text,
    unlike_the_paper,
)
from ablations.report.writers.markdown import markdown_document
from scalerl.recipe import ResolvedRecipe

CLAIMS = (
    {"variant": "loo-loss", "of": "ceiling", "says": "down", "by": 0.05, "source": "figure 5a"},
    {"variant": "loo-loss", "against": "loo-curriculum", "of": "level", "says": "up", "source": "nowhere"},
    {"variant": "loo-curriculum", "of": "compute", "says": "up", "by": 1.2, "source": "figure 6b"},
    {"variant": "loo-curriculum", "of": "ceiling", "says": "same", "by": 0.05, "source": "section 4"},
)
"""Of the truth of `fixtures_home`: loo-loss ends .07 lower, loo-curriculum needs half as much compute again."""


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    sweep = make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1, 2))
    return card_of(read_results(changed(sweep, claims=CLAIMS)))


def test_claims_that_are_true_hold_and_the_one_that_is_false_is_the_opposite(card):
    assert [one.outcome for one in card.claims] == ["holds", "opposite", "holds", "holds"]
    assert card.outcome == "holds"
    assert card.num_seeds == 3


def test_a_card_is_plain_data_and_markdown(card):
    data = json.loads(json.dumps(card.to_json(), allow_nan=False))
    assert data["outcome"] == "holds"
    assert data["claims"][0]["found"]["estimate"] == card.claims[0].found.estimate
    assert claims_table(card.claims).rows[2][1].text.startswith("x 1.")
    text = markdown_document(card_document(card, ["The model has 5 parameters, not 8 billion."]))
    assert text.startswith("# loo: 3 holds, 1 opposite\n")
    assert "| loo-loss: ceiling down by 0.05 | -0.0" in text
    assert "5 parameters" in text
    assert cost_sentence(card).startswith("9 runs, 3 seeds, ")
    assert cost_sentence(card).endswith(" in all, 2,000 each.")


HOSTILE = "<img src=x> ![i](https://elsewhere.example/x.png) | **b**"


def test_what_people_wrote_is_text_in_a_card(card):
    plan = dataclasses.replace(card.results.plan, doc=HOSTILE)
    results = dataclasses.replace(card.results, plan=plan)
    text = markdown_document(card_document(dataclasses.replace(card, results=results), [HOSTILE]))
    assert "<img" not in text
    assert "![i]" not in text


def test_the_card_of_runs_that_failed_tells_nothing_and_says_why(tmp_path):
    sweep = changed(make_home(tmp_path), claims=CLAIMS)
    for run in sweep.plan.runs:
        sweep.run(run.id).metrics.write_text("")
    card = written_card(read_results(sweep), sweep.folder, ["It is small."])
    assert {one.outcome for one in card.claims} == {"cannot tell"}
    assert [row[1].text for row in claims_table(card.claims).rows] == [
        "no upper end",
        "no level",
        "no common target",
        "no upper end",
    ]
    assert tally_text(card.claims) == "4 cannot tell"
    assert tally_text(card.claims[:1]) == "cannot tell"
    notes = " ".join(card_notes(card, ["It is small."]))
    assert "3 runs, of which 0 count, " in notes
    assert " in all of 2,000 each." in notes
    assert "scalerl-s0: done, without an evaluation so far" in notes
    assert "It is small" in (sweep.folder / "card.md").read_text()


def at_scale(results, scale):
    """The same results as those of a larger scale."""
    return dataclasses.replace(results, plan=dataclasses.replace(results.plan, sweep=f"loo@{scale}", scale=scale))


OVER_SCALES = (
    {"variant": "loo-loss", "of": "ceiling", "says": "carries", "source": "our guess"},
    {"variant": "loo-loss", "of": "level", "says": "flips", "source": "our guess"},
    {"variant": "loo-curriculum", "of": "ceiling", "says": "fades", "source": "our guess"},
)
"""Of equal scales: loo-loss ends lower at each, loo-curriculum as high as the reference."""


def test_the_card_of_a_study_over_scales_has_its_differences_and_judges_what_is_claimed_of_them(tmp_path):
    sweep = changed(make_home(tmp_path, seeds=(0, 1, 2)), claims=OVER_SCALES)
    results = read_results(sweep)
    ladder = scale_ladder([results, at_scale(results, "larger"), at_scale(results, "largest")])
    card = written_card(results, sweep.folder, [], ladder)
    assert [(one.word, one.outcome) for one in card.claims] == [
        ("carries", "holds"),
        ("carries", "opposite"),
        ("cannot tell", "cannot tell"),
    ]
    text = (sweep.folder / "card.md").read_text()
    assert "| loo-loss: difference in ceiling carries over scales | carries | holds | our guess |" in text
    section = text.partition("## Scale ladder")[2]
    assert "| variant | laptop | larger | largest | trend | over scales | forecast |" in section
    table = section.partition("### A ")[2].partition("###")[0]
    (row,) = [line for line in table.splitlines() if line.startswith("| loo-loss ")]
    assert row.count(f"| {results.compared('loo-loss').answers['ceiling'].cell} ") == 3
    assert row.split(" | ")[-2] == "carries"
    # Equal scales: what the two smaller ones forecast for the largest is what is found there.
    assert "without largest, the forecast for it contained the measured difference in 6 of 6 cases" in section
    assert card.to_json()["over_scales"] == ladder.to_json()
    (read,) = read_cards(sweep.home)
    assert [one.to_json() for one in read.claims] == [one.to_json() for one in card.claims]
    assert [sign_text(one) for one in read.claims] == [""] * 3


def test_a_card_that_is_damaged_is_no_outcome(tmp_path):
    sweep = make_home(tmp_path)
    (sweep.folder / "card.json").write_text("{")
    assert outcomes_here("loo", sweep.home) == ""
    command = f"`platform reproduce loo --home {tmp_path}`"
    with pytest.raises(AblationsError, match=rf"card.json cannot be read .*; to rewrite it, run {command}"):
        read_card(sweep.folder)


def test_a_card_that_was_written_is_read_as_it_was(tmp_path):
    published = {"scalerl": {"A": 0.61}, "loo-loss": {"A": 0.52}, "loo-curriculum": {"A": 0.61}}
    sweep = changed(make_home(tmp_path, seeds=(0, 1, 2)), claims=CLAIMS, published=published)
    card = written_card(read_results(sweep), sweep.folder, [])
    assert outcomes_here("loo", sweep.home) == "3 holds, 1 opposite"
    (found,) = read_cards(sweep.home)
    assert isinstance(found, WrittenCard)
    assert (found.sweep, found.num_seeds) == ("loo", 3)
    assert [one.to_json() for one in found.claims] == [one.to_json() for one in card.claims]
    assert [one.A for one in found.published] == [0.61, 0.52, 0.61]
    assert order_text(found.published) == "same order"
    assert [sign_text(one) for one in found.claims] == ["same", "other", "same", ""]


def test_a_sweep_that_claims_nothing_has_no_card(tmp_path):
    with pytest.raises(
        AblationsError, match="'loo' has no claims; write the paper's claims under `claims:` in its file"
    ):
        card_of(read_results(make_home(tmp_path)))


def test_a_card_says_turns_of_episodes_and_tokens_of_answers():
    guess = {"type": "episodes", "environment": "guess", "turns": 4, "tokens_per_turn": 3}
    plain = {
        "cluster": {"parameters_stand_for": 1e6},
        "model": {"tokenizer": "characters"},
        "length_control": {"type": "none"},
    }
    plain["generation"] = {"thinking": "none", "answer": 50}
    recipe = ResolvedRecipe.model_validate({**plain, "tasks": [guess, {**guess, "name": "short", "turns": 1}]})
    said = unlike_the_paper(recipe, 10_000)
    assert "Episodes of guess have up to 4 turns of 3 tokens, not one answer of up to 14,336." in said
    assert "Episodes of short have up to 1 turn of 3 tokens, not one answer of up to 14,336." in said
    assert not any(one.startswith("Answers") for one in said)


ONE_ENGINE = "One engine generates and trains"
ROUNDS = "during generation the engine rounds the factors of its products to BF16."
SUMS = "during generation the engine sums the head in 2 parts, so that only a BF16 head rounds differently"


@pytest.mark.parametrize(
    ("generator", "said"),
    [
        ({}, f"{ONE_ENGINE}, so equal weights give equal probabilities."),
        ({"products": "bfloat16"}, f"{ONE_ENGINE}; {ROUNDS}"),
        ({"head_parts": 2}, f"{ONE_ENGINE}; {SUMS}."),
        (
            {"head_parts": 2, "products": "bfloat16"},
            f"{ONE_ENGINE}; {SUMS}, and rounds the factors of its other products to BF16.",
        ),
    ],
)
def test_a_card_says_how_the_one_engine_rounds_while_it_generates(generator, said):
    recipe = ResolvedRecipe.model_validate(
        {"cluster": {"parameters_stand_for": 1e6}, "generator": {"type": "torch", **generator}}
    )
    assert [one for one in unlike_the_paper(recipe, 10_000) if "engine" in one] == [said]
