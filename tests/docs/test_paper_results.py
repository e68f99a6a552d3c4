"""Pages of the paper's claims say what their records have, and the records what the raw curves say."""

import csv
import gzip
import json
from statistics import fmean

import pytest
import yaml
from places import REPOSITORY

from ablations.files.lookup import files_of
from ablations.fit.curve_file import Declared, read_declared, read_seed_curves
from ablations.fit.options import FitSettings
from ablations.report.documents.claim_card import claim_text
from ablations.report.writers.markdown import markdown_text
from ablations.study.claims import Claim
from ablations.study.expand import expand

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


CARD = RESULTS / "ceilings/fig2.md"


def test_the_card_of_a_published_study_has_the_recipe_and_the_runs_of_its_file():
    """The id of a run is the hash of its recipe and seed, so the study of today is that of the file."""
    text = CARD.read_text()
    head = yaml.safe_load(text.split("---\n")[1])
    file = CARD.parent / head["configs"][0]["data_files"]
    rows = list(csv.DictReader(gzip.decompress(file.read_bytes()).decode().splitlines()))
    study = expand(files_of("study")["fig2"], scale="bench_november")
    assert {(one["curve"], int(one["seed"]), one["run"]) for one in rows} == {
        (run.variant, run.seed, run.id) for run in study.runs
    }
    assert f"{len(rows):,} held-out evaluations of {len(study.runs)} runs: 5 variants, seeds 0, 1, 2" in text
    reference = study.reference.recipe.model_dump(mode="json")
    assert yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0]) == reference
    assert head["license"] == "apache-2.0"
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text()


def test_a_published_study_is_compared_without_options():
    declared = read_declared(CARD.with_name("fig2.csv.gz"))
    assert declared == Declared(
        compute_unit="modelled GPU-hours", reference="scalerl", settings=FitSettings(fit_to=1600.0)
    )
    assert len(read_seed_curves(CARD.with_name("fig2.csv.gz"))) == 15
    (card,) = (card for page, card in CARDS if (page, card["study"]) == ("ceilings", "fig2"))
    assert all(code in CARD.read_text() for code in card["code_versions"])
