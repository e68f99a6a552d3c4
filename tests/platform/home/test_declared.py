"""Claims and design are sealed when a study starts; what changes later is a further entry and is said."""

import json

import pytest
from fixtures_home import BUDGET, changed, make_home

from ablations.errors import AblationsError
from ablations.findings.claim_card import card_of
from ablations.findings.results import read_results
from ablations.home.declared import declarations, declare
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.claim_card import declared_sentences
from ablations.study.claims import Claim

LOSS = Claim(variant="loo-loss", of="ceiling", says="down", by=0.05, source="figure 7").model_dump()
CURRICULUM = Claim(variant="loo-curriculum", of="level", says="same", by=0.02, source="figure 7").model_dump()


@pytest.fixture
def sweep(tmp_path):
    """A study with one claim, before its first run."""
    planned = make_home(tmp_path / "planned", seeds=(0, 1))
    fresh = changed(StartedSweep(home=Home(tmp_path / "home"), plan=planned.plan), claims=(LOSS,))
    fresh.folder.mkdir(parents=True)
    return fresh


def trained(sweep, tmp_path):
    """The same study once its runs have 40 readings each."""
    make_home(tmp_path / "trained", seeds=(0, 1))
    return changed(StartedSweep(home=Home(tmp_path / "trained"), plan=sweep.plan), claims=sweep.plan.claims)


def test_what_is_declared_before_the_first_run_stays_declared(sweep):
    first = declare(sweep)
    assert first.readings == 0
    assert first.when.startswith("before the first run, 2")
    assert declare(sweep) == first
    assert len(declarations(sweep)) == 1
    assert first.design == {
        "reference": "scalerl", "variants": ["scalerl", "loo-loss", "loo-curriculum"], "seeds": [0, 1],
        "budget_gpu_hours": BUDGET,
    }  # fmt: skip


def test_a_claim_edited_after_readings_is_said_on_the_card(sweep, tmp_path):
    declare(sweep)
    record = (sweep.folder / "declared.json").read_bytes()
    later = trained(sweep, tmp_path)
    (later.folder / "declared.json").write_bytes(record)
    stricter = changed(later, claims=(LOSS | {"by": 0.04}, CURRICULUM, LOSS))
    again = declare(stricter)
    assert again.readings == 6 * 40
    card = card_of(read_results(stricter))
    said = declared_sentences(card)
    assert said[0].startswith("loo-loss: ceiling down by 0.04: declared after 240 evaluations, ")
    assert said[1].startswith("loo-curriculum: same level within 0.02: declared after 240 evaluations, ")
    assert said[2].startswith("loo-loss: ceiling down by 0.05: declared before the first run, ")
    assert [one["declared"]["readings"] for one in card.to_json()["claims"]] == [240, 240, 0]


def test_a_sealed_study_says_since_when_and_what_of_its_design_changed(sweep, tmp_path):
    first = declare(sweep)
    record = (sweep.folder / "declared.json").read_bytes()
    later = trained(sweep, tmp_path)
    (later.folder / "declared.json").write_bytes(record)
    (said,) = declared_sentences(card_of(read_results(later)))
    assert said == f"Claims and design: declared {first.when} (sha256 {first.sha256[:12]})."
    declare(changed(later, budget_gpu_hours=1000.0))
    *_, change = declared_sentences(card_of(read_results(later)))
    assert change.startswith("Design changed after 240 evaluations, ")
    assert change.endswith(": budget 2000.0 to 1000.0.")


def test_a_record_that_was_changed_by_hand_is_refused(sweep):
    declare(sweep)
    path = sweep.folder / "declared.json"
    content = json.loads(path.read_text())
    content[0]["claims"][0]["by"] = 0.01
    path.write_text(json.dumps(content))
    with pytest.raises(AblationsError, match="changed since it was written"):
        declarations(sweep)
    path.write_text("[{}]")
    with pytest.raises(AblationsError, match="not a record of declarations"):
        declarations(sweep)
