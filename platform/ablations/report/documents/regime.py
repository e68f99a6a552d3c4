"""How far the runs of a sweep are from the paper's regime, as a section of a document."""

from collections.abc import Sequence

from ablations.findings.regime import WITHIN_FACTOR, RegimeNumber
from ablations.report.documents.blocks import Blocks, Cell, Heading, Kind, Text, table_of_rows

KINDS: dict[str, Kind] = {"number": "prose", "here": "number", "large runs": "number", "source": "prose"}


def regime_section(numbers: Sequence[RegimeNumber], reference: str) -> Blocks:
    """A sentence, and a line per number."""
    return [
        Heading(text="How far from the paper's regime"),
        Text(text=regime_sentence(numbers, reference)),
        table_of_rows([_cells(one) for one in numbers], name="regime", kinds=KINDS),
    ]


def regime_sentence(numbers: Sequence[RegimeNumber], reference: str) -> str:
    """How many numbers are inside, and the titles of those outside and of those not known."""
    inside = sum(one.is_within is True for one in numbers)
    said = [
        f"Runs of {reference} lie within a factor of {WITHIN_FACTOR:g} of the paper, or of public runs where it "
        f"publishes no number, in {inside} of {len(numbers)} numbers."
    ]
    for word, is_within in (("Outside", False), ("Not known", None)):
        if titles := [one.published.title for one in numbers if one.is_within is is_within]:
            said.append(f"{word}: {'; '.join(titles)}.")
    return " ".join(said)


def _cells(one: RegimeNumber) -> dict[str, Cell | str]:
    given = one.published
    here = "not known" if one.here is None else f"{one.here:.2g}"
    low, high = f"{given.low:.2g}", f"{given.high:.2g}"
    return {
        "number": given.title,
        "here": Cell(here, one.here, tone="faint" if one.is_within is None else "good" if one.is_within else "bad"),
        "large runs": low if low == high else f"{low} to {high}",
        "of": "the paper" if given.of_paper else "public runs",
        "source": given.source,
    }
