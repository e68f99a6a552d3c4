"""One page as Streamlit runs it, without a browser: `open_page(monkeypatch, home, "run", sweep="loo")`."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ablations_dashboard.widgets.figure import COMPONENT_NAME

SCRIPT = """
from ablations_dashboard.selection.url import restore
from ablations_dashboard.views import {page}

restore("{page}")
{page}.show()
"""


def open_page(monkeypatch: pytest.MonkeyPatch, home: Path, page: str, **query: str | list[str]) -> AppTest:
    """The page of a home folder with a selection in its URL, run once without an exception."""
    monkeypatch.setenv("ABLATIONS_HOME", str(home))
    shown = AppTest.from_string(SCRIPT.format(page=page), default_timeout=60)
    for name, value in query.items():
        shown.query_params[name] = value
    shown.run()
    assert not shown.exception
    return shown


def figures_of(page: AppTest) -> list[dict]:
    """What Plotly is told to draw, figure by figure."""
    drawn = [one.proto for one in page.get("bidi_component") if one.proto.component_name == COMPONENT_NAME]
    return [json.loads(json.loads(proto.json)["spec"]) for proto in drawn]


def messages(page: AppTest) -> str:
    """All that the page says in boxes."""
    return "\n".join(one.value for kind in (page.error, page.warning, page.info, page.success) for one in kind)


def html_of(page: AppTest) -> str:
    """The HTML that the page writes itself."""
    return "".join(element.proto.body for element in page.get("html"))
