"""Diagnoses as documents: for a sweep the first causes of each run, for a page all of them."""

from ablations.diagnosis.diagnose import Diagnosis
from ablations.diagnosis.history import History
from ablations.report.documents.blocks import Folded, Heading, Text
from ablations.report.documents.diagnosis import causes, diagnoses_document


def finding(rule: str, **given) -> Diagnosis:
    given = {"since_step": None, "how_sure": "likely", "cost_share": None} | given
    return Diagnosis(rule=rule, text="entropy rose", change="lower entropy_bonus", **given)


def history(name: str) -> History:
    return History(name=name, steps=[{"step": step} for step in range(1, 1201)], evaluations=[])


FOUND = [
    finding("entropy explodes", since_step=1060, how_sure="sure", cost_share=0.7),
    *(finding(rule) for rule in ("mismatch grows", "starved", "score falls")),
]
SAID = (
    "entropy explodes (sure since step 1,060, the last 70% of the compute). Entropy rose. To change: lower "
    "entropy_bonus."
)


def test_of_each_run_the_first_causes_are_said_and_the_rules_of_the_others():
    assert diagnoses_document([(history("b-s0"), FOUND), (history("a-s0"), [])]) == [
        Text(text="a-s0, 1,200 steps: nothing found"),
        Heading(text="b-s0, 1,200 steps", level=3),
        Text(text=f"1. {SAID}"),
        Text(text="2. mismatch grows (likely). Entropy rose. To change: lower entropy_bonus."),
        Text(text="3. starved (likely). Entropy rose. To change: lower entropy_bonus."),
        Text(text="Also: score falls. `--json` has all of it."),
    ]


def test_a_run_too_short_for_most_rules_keeps_what_was_found():
    short = History(name="c-s0", steps=[], evaluations=[])
    head, first = diagnoses_document([(short, FOUND[1:2])])
    assert head == Heading(text=f"c-s0, 0 steps: {short.unjudged}", level=3)
    assert first.text.startswith("1. mismatch grows")


def test_a_page_has_the_first_causes_as_warnings_and_folds_the_others():
    first, folded = causes(FOUND, 1)
    assert first == Text(text=f"E{SAID[1:]}", kind="warning")
    assert isinstance(folded, Folded)
    assert folded.title == "3 further findings of `platform doctor`"
    assert len(folded.blocks) == 3
    assert causes(FOUND[:1], 1) == [first]
    assert causes([], 1) == []
