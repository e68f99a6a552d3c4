"""Cards that studies have written, `card.json` in a sweep's folder: the paper's numbers beside the local ones."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ablations.answers.answer import Answer
from ablations.answers.questions import BY_NAME
from ablations.errors import AblationsError
from ablations.findings.card import CARD_FILE, JudgedClaim, PublishedVariant
from ablations.home.home import Home
from ablations.study.claims import Claim


@dataclass(frozen=True, kw_only=True)
class WrittenCard:
    """A written card: `WrittenCard(sweep="fig4a@smoke", study="fig4a", scale="smoke", ...)`."""

    sweep: str
    scale: str
    doc: str
    num_seeds: int
    claims: tuple[JudgedClaim, ...]
    published: tuple[PublishedVariant, ...] = ()

    @property
    def study(self) -> str:
        """The name of the study's file; the sweep's name also has `@scale` at another scale."""
        return self.sweep.partition("@")[0]


def read_card(folder: Path) -> WrittenCard | None:
    """The card in a sweep's folder; None if there is none, AblationsError if it is damaged or of an earlier form."""
    path = folder / CARD_FILE
    try:
        data = json.loads(path.read_bytes())
        return WrittenCard(
            sweep=folder.name,
            scale=data["scale"],
            doc=data["doc"],
            num_seeds=data["num_seeds"],
            claims=tuple(_judged(one) for one in data["claims"]),
            published=tuple(PublishedVariant(**one) for one in data["published"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        why = f"{path} cannot be read ({type(error).__name__}: {error})"
        raise AblationsError(f"{why}; `platform reproduce {folder.name}` writes it again") from None


def _judged(data: dict[str, Any]) -> JudgedClaim:
    claim = Claim(**{name: value for name, value in data.items() if name in Claim.model_fields})
    return JudgedClaim(
        claim=claim,
        found=Answer.written(BY_NAME[claim.of], **data["found"]),
        outcome=data["outcome"],
        word=data.get("over_scales"),
    )


def read_cards(home: Home) -> Iterator[WrittenCard | AblationsError]:
    """Every card of a home folder, the last started sweep first; for an unreadable card, the error."""
    for name in home.sweep_names():
        try:
            card = read_card(home.sweep(name))
        except AblationsError as error:
            yield error
        else:
            if card is not None:
                yield card


def sign_text(judged: JudgedClaim) -> str:
    """The side of the estimate against the claim, `same` or `other`; empty for a claim without a side and without an
    estimate.
    """
    claim, found = judged.claim, judged.found
    if claim.says not in ("up", "down") or found is None or found.estimate is None:
        return ""
    middle = 1.0 if claim.of == "compute" else 0.0
    return "same" if (found.estimate > middle) == (claim.says == "up") else "other"


def order_text(published: Sequence[PublishedVariant]) -> str:
    """`same order` if the variants follow the paper's order of ceilings, else the order here; empty for fewer than two.

    Variants with equal ceilings in the paper may come in either order.
    """
    both = [one for one in published if one.A is not None and one.A_here is not None]
    if len(both) < 2:
        return ""
    here = sorted(both, key=lambda one: one.A_here or 0.0)
    if all((a.A or 0.0) <= (b.A or 0.0) for a, b in pairwise(here)):
        return "same order"
    return f"other order: {' < '.join(one.variant for one in here)}"
