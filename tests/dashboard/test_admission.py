"""Without its token a page shows nothing, to no one."""

import re

import pytest
from dashboard.browser import served_in_browser
from fixtures_home import make_home
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

import ablations.cli.serve
from ablations.cli import app
from ablations.cli.serve import TOKEN_VARIABLE
from ablations.errors import AblationsError
from ablations_dashboard.server.admission import is_same


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    make_home(home)
    yield from served_in_browser(home)


@pytest.mark.parametrize(("path", "token"), [("", ""), ("compare", "wrong"), ("forecast", "\N{SNOWMAN}")])
def test_a_page_without_the_token_shows_no_name_and_no_page(browser, path, token):
    with browser.window() as page:
        page.open(path, token=token, sweep="loo")
        page.page.get_by_text("To open this page, use the URL").wait_for()
        shown = page.page.content()
        assert "loo-loss" not in shown
        assert "scalerl" not in shown
        assert page.page.locator('[data-testid="stSidebarNav"]').count() == 0
        assert page.page.locator(".js-plotly-plot").count() == 0


def test_the_token_survives_a_change_of_page_and_a_reload(browser):
    with browser.window() as page:
        page.open("compare", sweep="loo", variant="loo-loss")
        page.is_whole(figures=2)
        page.act(lambda: page.page.get_by_role("link", name="Forecast").click())
        page.page.get_by_role("heading", name="what more compute would buy").wait_for()
        assert f"token={browser.token}" in page.page.url
        assert "sweep=loo" in page.page.url
        assert "variant=loo-loss" in page.page.url
        assert page.page.get_by_role("button", name="loo-loss", pressed=True).count() == 1
        page.act(page.page.reload)
        page.page.get_by_role("heading", name="what more compute would buy").wait_for()


def test_tokens_are_compared_whole():
    assert is_same("abc", "abc")
    assert not is_same("ab", "abc")
    assert not is_same("", "abc")
    assert not is_same("\udc80", "abc")


@pytest.fixture
def served(monkeypatch, tmp_path):
    """`served("--no-token")` is the URL that the command prints, and the environment and options of its server."""
    monkeypatch.setenv("ABLATIONS_HOME", str(tmp_path))
    started: list[list[str]] = []
    monkeypatch.setattr(ablations.cli.serve, "become", started.append)

    def served(*options, token="", code=0):
        monkeypatch.setenv(TOKEN_VARIABLE, token)  # the command itself sets it for the server that it becomes
        result = CliRunner().invoke(app, ["dashboard", *options])
        if code:
            raise result.exception or AssertionError(result.output)
        assert result.exit_code == 0, result.output
        return re.findall(r"http://\S+", result.output)[-1], started[-1]

    return served


def test_each_start_makes_a_token_that_the_command_line_does_not_show(served):
    first, command = served("--port", "9000")
    second, _ = served("--port", "9000")
    token = first.removeprefix("http://127.0.0.1:9000/?token=")
    assert len(token) == 32  # 24 bytes
    assert first != second
    assert token not in " ".join(command)  # which every user of the machine can read
    assert "--server.address=127.0.0.1" in command


def test_the_environment_sets_the_token_and_an_option_leaves_it_out(served):
    assert served("--no-token")[0] == "http://127.0.0.1:8501/"
    assert served(token="a b&c")[0] == "http://127.0.0.1:8501/?token=a+b%26c"
    with pytest.raises(AblationsError, match="conflicts with"):
        served("--no-token", token="a", code=2)


def nothing_set() -> None:
    import streamlit as st

    from ablations_dashboard.server.admission import require_token

    require_token()
    st.write("shown")


@pytest.mark.parametrize(("token", "asked", "shown"), [(None, "", False), ("", "", True), ("t", "t", True)])
def test_pages_that_nobody_gave_a_token_are_shut(monkeypatch, token, asked, shown):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    if token is not None:
        monkeypatch.setenv(TOKEN_VARIABLE, token)
    page = AppTest.from_function(nothing_set, default_timeout=250)
    if asked:
        page.query_params["token"] = asked
    page.run()
    assert [one.value for one in page.markdown] == (["shown"] if shown else [])
    assert len(page.error) == (0 if shown else 1)
