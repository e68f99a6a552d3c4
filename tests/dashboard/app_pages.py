"""One page as Streamlit runs it, without a browser: `open_page(monkeypatch, home, "run", sweep="loo")`."""

import base64
import json
from pathlib import Path

import numpy as np
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
    shown = AppTest.from_string(SCRIPT.format(page=page), default_timeout=250)
    for name, value in query.items():
        shown.query_params[name] = value
    shown.run()
    assert not shown.exception
    return shown


def figures_of(page: AppTest) -> list[dict]:
    """What Plotly is told to draw, figure by figure, its arrays as lists with None for a gap."""
    drawn = [one.proto for one in page.get("bidi_component") if one.proto.component_name == COMPONENT_NAME]
    return [json.loads(json.loads(proto.json)["spec"], object_hook=_unpacked) for proto in drawn]


def _unpacked(data: dict) -> object:
    """An array of Plotly, which is sent as bytes, as a list."""
    if "bdata" not in data:
        return data
    numbers = np.frombuffer(base64.b64decode(data["bdata"]), data["dtype"]).tolist()
    return [None if number != number else number for number in numbers]


def messages(page: AppTest) -> str:
    """All that the page says in boxes."""
    return "\n".join(one.value for kind in (page.error, page.warning, page.info, page.success) for one in kind)


def html_of(page: AppTest) -> str:
    """The HTML that the page writes itself."""
    return "".join(element.proto.body for element in page.get("html"))
