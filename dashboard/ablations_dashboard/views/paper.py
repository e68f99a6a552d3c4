"""The paper's claims beside what the studies in a home folder found: drawn, and as a table; then ceilings."""

from collections.abc import Sequence

import streamlit as st

from ablations.errors import AblationsError
from ablations.findings.claim_card import JudgedClaim, WrittenCard, order_text, read_cards, sign_text
from ablations.home.home import find_home
from ablations.report.documents.blocks import Cell, Folded, Kind, table_of_rows
from ablations.report.documents.claim_card import (
    CLAIM_KINDS,
    OUTCOMES,
    claim_cells,
    claim_text,
    found_text,
    tally_text,
)
from ablations.report.documents.number_cells import number_cell
from ablations.text import counted, interval_text
from ablations_dashboard.drawings.claims import CLAIMS_LEGEND, claims_chart
from ablations_dashboard.escape import in_code, in_markdown, with_code
from ablations_dashboard.selection.url import pick
from ablations_dashboard.widgets.document import show_document
from ablations_dashboard.widgets.figure import show_picture
from ablations_dashboard.widgets.message import errors_on_page

ANY_OUTCOME = "all"


@errors_on_page()
def show() -> None:
    """Show every card that `platform reproduce` has written into this home folder."""
    home = find_home(None)
    found = list(read_cards(home))
    st.title("Claims of the paper, and what we found")
    st.sidebar.caption(f"Home folder {in_code(str(home.path))}")
    for problem in (one for one in found if isinstance(one, AblationsError)):
        st.error(with_code(str(problem)))
    cards = sorted((one for one in found if isinstance(one, WrittenCard)), key=lambda card: card.sweep)
    if not cards:
        train = in_code(f"platform reproduce fig4a {home.option}")
        st.info(
            f"No card in {in_code(str(home.path))}. {train} trains a study and writes one; "
            f"{in_code('platform reproduce --list')} names them all."
        )
        st.stop()
    claims = [one for card in cards for one in card.claims]
    number = "One study" if len(cards) == 1 else f"{len(cards)} studies"
    st.caption(f"{number}, {counted(len(claims), 'claim')}: {tally_text(claims)}.")
    chosen = pick("outcome", "With the outcome", (ANY_OUTCOME, *OUTCOMES), default=ANY_OUTCOME)
    show_pictures(cards, chosen)
    with st.expander("All claims as a table"):
        show_claim_table(cards, chosen)
    show_ceilings(cards)


def show_pictures(cards: Sequence[WrittenCard], outcome: str) -> None:
    """Show a picture per study of its claims beside what was found."""
    with_outcome = ((card, [one for one in card.claims if outcome in (ANY_OUTCOME, one.outcome)]) for card in cards)
    shown = [(card, claims) for card, claims in with_outcome if claims]
    if not shown:
        st.info("No claim has this outcome.")
        return
    places = [column for _ in shown[::2] for column in st.columns(2)]  # in pairs: a narrow screen keeps their order
    for (card, claims), place in zip(shown, places, strict=False):
        with place:
            st.markdown(f"**{in_markdown(card.sweep)}** · {tally_text(claims)} · {counted(card.num_seeds, 'seed')}")
            st.caption(in_markdown(card.doc))
            drawn = [one for one in claims if not one.claim.is_over_scales]
            if drawn:
                show_picture(claims_chart(drawn), name=f"{card.sweep}-claims")
            for one in (one for one in claims if one.claim.is_over_scales):
                st.markdown(in_markdown(_claim_sentence(one)))
    st.caption(CLAIMS_LEGEND)


def _claim_sentence(judged: JudgedClaim) -> str:
    return f"{claim_text(judged.claim)}: {found_text(judged)}, {judged.outcome}"


def show_claim_table(cards: Sequence[WrittenCard], outcome: str) -> None:
    """Show a line per claim."""
    lines = [
        {
            "study": card.sweep,
            **row,
            "sign": sign_text(one),
            "seeds": Cell(str(card.num_seeds), card.num_seeds),
            "asks": card.doc,
        }
        for card in cards
        for one in card.claims
        if outcome in (ANY_OUTCOME, one.outcome)
        for row in [claim_cells(one)]
    ]
    if lines:
        meanings = " ".join(f"{name}: {meaning}." for name, meaning in OUTCOMES.items())
        sign = "sign: whether the estimate lies on the side that is claimed, however wide its interval."
        kinds: dict[str, Kind] = {**CLAIM_KINDS, "sign": "words", "asks": "prose"}
        show_document([table_of_rows(lines, name="claims", kinds=kinds, notes=(meanings, sign))], scope="paper")


def show_ceilings(cards: Sequence[WrittenCard]) -> None:
    """Show published ceilings beside the measured ones, and compare the order of the variants with the paper's."""
    lines = [
        {
            "study": card.sweep,
            "variant": one.variant,
            "A in the paper": number_cell(one.A, "g"),
            "A here": Cell(interval_text(one.A_here, one.A_lo, one.A_hi, ".3f"), one.A_here),
            "order": order_text(card.published),
        }
        for card in cards
        for one in card.published
    ]
    if lines:
        note = (
            "Tasks and models differ, so only the order of the ceilings can be compared, not the ceilings themselves."
        )
        table = table_of_rows(lines, name="ceilings", kinds={"variant": "name", "order": "words"}, notes=(note,))
        show_document([Folded(title="Ceilings in the paper and here", blocks=[table])], scope="paper")
