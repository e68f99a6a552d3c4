"""The pages in a real browser: `platform dashboard` on a free port and one headless Chromium.

A module that uses it makes a home folder and shares one server and one browser:

    @pytest.fixture(scope="module")
    def browser(tmp_path_factory):
        home = tmp_path_factory.mktemp("home")
        make_home(home)
        yield from served_in_browser(home)

    def test_something(browser):
        with browser.window() as page:
            page.open("forecast", sweep="loo")
            page.is_whole(figures=1)
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from ports import free_ports
from reaper import start_reaper
from waiting import wait_until

from ablations.cli.serve import TOKEN_VARIABLE

CHROMIUM = Path("/usr/bin/chromium")
LIMIT_MS = 200_000
"""For one page; a slow machine with other work on it needs some seconds."""
BENIGN = ("ResizeObserver loop",)
"""Errors on the console that say nothing of the page."""


def require_chromium() -> None:
    """Skip the test without Debian's Chromium, but fail it on CI."""
    if CHROMIUM.exists():
        return
    reason = f"{CHROMIUM} is missing; `make debian` installs it"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Window:
    """One tab in a session of its own, `page` for Playwright; it notes every error and every request to elsewhere."""

    def __init__(self, page: Any, url: str, token: str) -> None:
        self.page, self.url, self.token = page, url, token
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        page.set_default_timeout(LIMIT_MS)
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("request", self._note_request)

    def _note_message(self, message: Any) -> None:
        # Streamlit looks for its server below the path of the page first, /forecast/_stcore/health, and then above.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            self._note(f"{message.text} {message.location.get('url', '')}")

    def _note(self, text: str) -> None:
        if not any(benign in text for benign in BENIGN):
            self.errors.append(text)

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith((self.url, self.url.replace("http", "ws"), "data:", "blob:")):
            self.elsewhere.append(request.url)

    def open(self, path: str = "", *, token: str | None = None, **query: str | list[str]) -> None:
        """Open a page with a selection; `token` takes the place of the right one, and "" leaves it out."""
        token = self.token if token is None else token
        words = ({"token": token} if token else {}) | query
        self.page.goto(f"{self.url}/{path}?{urlencode(words, doseq=True)}")
        self.settled()

    def settled(self) -> None:
        """Wait until the page's script has ended, no part of it is of an earlier run, and every figure is drawn."""
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
        self.page.wait_for_function("!document.querySelector('[data-stale=true]')")
        self.page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')")
        self.page.wait_for_function("!document.querySelector('.ablations-figure:not(.js-plotly-plot)')")

    def act(self, *steps: Any) -> None:
        """Do what each step does, and wait after each until the page has settled."""
        for step in steps:
            step()
            self._reach_server()
            self.settled()

    def _reach_server(self) -> None:
        """Wait until a click has reached the server: it answers what the page asks after the click."""
        self.page.wait_for_timeout(250)
        for _ in range(3):
            self.page.wait_for_function("url => fetch(url).then(() => true)", arg=f"{self.url}/_stcore/health")

    def choose(self, label: str, *options: str) -> None:
        """Click options of the list whose label begins so, each in turn; lists of several stay open until Escape.

        A list closes when the page is scrolled, so it is opened until the option is there. The click on the option has
        no position, like a screen reader's: a list moves while the page around it is still being drawn.
        """
        combobox = self.page.get_by_role("combobox", name=re.compile(rf"^{re.escape(label)}\b")).first
        for option in options:
            shown = self.page.get_by_role("option", name=option, exact=True)
            self.act(combobox.scroll_into_view_if_needed)
            wait_until(partial(self._opens, combobox, shown), f"{option} in {label}", limit_s=LIMIT_MS / 1000)
            self.act(partial(shown.dispatch_event, "click"))
        self.act(partial(self.page.keyboard.press, "Escape"))

    def _opens(self, combobox: Any, option: Any) -> bool:
        if not option.count():
            self.act(combobox.click)
        return option.count() > 0

    def text(self) -> str:
        """What a reader can see."""
        return self.page.locator('[data-testid="stApp"]').inner_text()

    def is_whole(self, *, figures: int = 0) -> None:
        """No exception, no error on the console, no request to elsewhere, and at least so many figures drawn."""
        assert self.page.locator('[data-testid="stException"]').count() == 0, self.text()
        assert not self.errors, self.errors
        assert not self.elsewhere, self.elsewhere
        drawn = wait_until(lambda: self.num_figures() >= figures, f"{figures} figures", limit_s=LIMIT_MS / 1000)
        assert drawn

    def num_figures(self) -> int:
        """Figures with an area and with something drawn in it."""
        return self.page.evaluate(
            """() => [...document.querySelectorAll('.js-plotly-plot')].filter(plot =>
                plot.getBoundingClientRect().width > 50
                && plot.querySelector('.trace path, .bars .point, canvas, .heatmaplayer image')).length"""
        )

    def downloads(self, click: Any) -> bytes:
        """The content of the file that a click downloads."""
        with self.page.expect_download() as waited:
            click()
        return Path(waited.value.path()).read_bytes()


class Browser:
    """A server of pages and a Chromium: `with browser.window(dark=True, width=400) as page`."""

    def __init__(self, chromium: Any, url: str, token: str) -> None:
        self.chromium, self.url, self.token = chromium, url, token

    @contextmanager
    def window(self, *, dark: bool = False, width: int = 1440, height: int = 900) -> Iterator[Window]:
        """A tab with no past."""
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        context = self.chromium.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        try:
            yield Window(context.new_page(), self.url, self.token)
        finally:
            context.close()


def served_in_browser(home: Path) -> Iterator[Browser]:
    """`platform dashboard` over a home folder, and Chromium; both end with the fixture, or with this process."""
    require_chromium()
    from playwright.sync_api import sync_playwright

    with (
        pages_served(home) as (url, token),
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as chromium,
    ):
        yield Browser(chromium, url, token)


@contextmanager
def pages_served(home: Path, *options: str) -> Iterator[tuple[str, str]]:
    """`platform dashboard` on a free port: its address and the token, both as it printed them."""
    (port,) = free_ports(1)
    mark = f"DASHBOARD_SERVER_OF={home}:{port}"
    name, _, value = mark.partition("=")
    command = [sys.executable, "-m", "ablations.cli", "dashboard", f"--port={port}", f"--home={home}", *options]
    reaper = start_reaper(mark)
    own = {key: one for key, one in os.environ.items() if key != TOKEN_VARIABLE} | {name: value}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=own)
    try:
        assert server.stdout is not None
        printed = server.stdout.readline()
        wait_until(lambda: _answers(port), f"the pages ({printed.strip()})", process=server)
        address, _, query = printed.partition("http://")[2].strip().partition("/")
        yield f"http://{address}", query.removeprefix("?token=")
    finally:
        reaper.communicate()
        server.communicate()


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
