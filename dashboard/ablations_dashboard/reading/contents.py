"""The pages that a home folder has content for."""

from ablations.findings.campaign import campaign_names
from ablations.findings.claim_card import CARD_FILE
from ablations.findings.scale_ladder import ladders_of
from ablations.home.home import Home
from ablations.search.record import SEARCH_FILE


def empty_pages(home: Home) -> set[str]:
    """The paths of pages that would have nothing to show, by the names of files and folders alone."""
    sweeps = [home.sweep(name) for name in home.sweep_names()]
    has_content = {
        "ladder": bool(ladders_of(home)),
        "search": any((folder / SEARCH_FILE).exists() for folder in sweeps),
        "campaigns": bool(campaign_names(home)),
        "paper": any((folder / CARD_FILE).exists() for folder in sweeps),
    }
    return {path for path, has in has_content.items() if not has}
