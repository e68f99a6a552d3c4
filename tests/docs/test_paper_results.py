"""Pages of the paper's claims say what their records have, and the records what the raw curves say."""

import csv
import gzip
import json
from statistics import fmean

import pytest
from places import REPOSITORY

from ablations.report.documents.claim_card import claim_text
from ablations.report.writers.markdown import markdown_text
from ablations.study.claims import Claim

RESULTS = REPOSITORY / "docs/results"
CARDS = [
    (record.stem.partition("_")[2], card)
    for record in sorted((REPOSITORY / "benchmarks/results").glob("reproduction_*.json"))
    for card in json.loads(record.read_text())["cards"]
]
CLAIM_KEYS = tuple(Claim.model_fields)


def claims_of(card):
    return [Claim(**{key: one[key] for key in CLAIM_KEYS}) for one in card["claims"]]


@pytest.mark.parametrize(("page", "card"), CARDS)
def test_the_page_has_every_claim_with_its_outcome(page, card):
    text = (RESULTS / f"{page}.md").read_text()
    assert f"({page}/{card['study']}.png)" in text
    for claim, one in zip(claims_of(card), card["claims"], strict=True):
        lines = [line for line in text.splitlines() if f"| {markdown_text(claim_text(claim))} |" in line]
        assert any(f"| {one['outcome']} |" in line for line in lines)


def last_third(readings, until):
    """Mean pass rate of the readings in the last third of the compute: what a level is, without its weights."""
    return fmean(score for compute, score in readings if 2 / 3 * until <= compute <= until)


def levels(page, study):
    """Of each variant, in the mean over its seeds."""
    text = gzip.decompress((RESULTS / f"{page}/{study}.csv.gz").read_bytes()).decode()
    runs = {}
    for row in csv.DictReader(text.splitlines()):
        readings = runs.setdefault((row["curve"], row["seed"]), [])
        readings.append((float(row["compute"]), float(row["score"])))
    until = min(readings[-1][0] for readings in runs.values())
    variants = dict.fromkeys(name for name, _ in runs)
    return {
        name: fmean(last_third(readings, until) for (own, _), readings in runs.items() if own == name)
        for name in variants
    }


@pytest.mark.parametrize(("page", "card"), CARDS)
def test_differences_in_level_are_those_of_the_raw_curves(page, card):
    found = levels(page, card["study"])
    reference = next(iter(found))
    assert len(found) >= 2
    for one in card["claims"]:
        if one["of"] == "level":
            difference = found[one["variant"]] - found[one["against"] or reference]
            assert one["found"]["estimate"] == pytest.approx(difference, abs=0.01)
