"""How fast many runs open: commands, and the page Compare in Chromium, on generated home folders.

    PYTHONPATH=platform:trainer:dashboard:tests:tests/dashboard python benchmarks/pages_speed.py
    ... pages_speed.py --size 40 5 200 20 --many 400 --turns 3 --folder DIR --without-browser

A home folder of 40 variants x 5 seeds x 200 evaluations x 20 metrics is written by `generated_home.py` and timed:
`platform compare` with nothing kept, with all kept, and after a new evaluation of one run; then a second one of 400
variants, 2,000 runs. Debian's Chromium opens the page Compare of both: until the first figure is drawn, until nothing
moves any more, until another baseline or a click has drawn what it asks for, the heap of the browser, the memory of the
server. Fifteen visits to a server of their own cost it so many processor seconds. Wall seconds hang on other work:
seconds of the processors (of all processes of a command, of the server and of the page's renderer) stand beside them,
and the record has the load. Everything is measured `--turns` times, the median counts. Takes about ten minutes on two
idle cores, most of it to write and to fit the 2,000 runs, and 1.3 GB of disk. Writes `results/pages_speed.json`.
"""

import argparse
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from generated_home import NAME, Size, write_home
from record import write_record

from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep

TARGETS = {
    "first_fit_s": 20.0,
    "compare_stored_s": 2.0,
    "many_runs_opened_s": 6.0,
    "new_evaluation_s": 10.0,
    "first_plot_of_a_new_server_s": 4.0,
    "settled_on_a_new_server_s": 6.0,
    "other_baseline_s": 1.0,
    "first_plot_s": 3.0,
    "click_s": 1.0,
    "server_of_fifteen_visits_s": 13.5,
    "browser_heap_mb": 250.0,
    "server_memory_mb": 300.0,
}
"""Of issues 14 and 52, on two idle cores; the server's is of processor seconds."""
VISITS = 15
OTHER_BASELINE = "lr-0.0001"
WAIT_S = 300.0
MB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Taken:
    """`Taken(wall_s=1.9, processor_s=1.25)`: medians over the turns."""

    wall_s: float
    processor_s: float

    @classmethod
    def of(cls, turns: list[tuple[float, float]]) -> "Taken":
        """Of wall and processor seconds of each turn."""
        wall, processor = np.median(np.array(turns), axis=0)
        return cls(wall_s=round(float(wall), 2), processor_s=round(float(processor), 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", type=int, nargs=4, default=[40, 5, 200, 20], help="variants, seeds, evaluations, metrics"
    )
    parser.add_argument("--many", type=int, default=400, help="variants of the second home folder; 0 for none")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the home folders are made, and left for the next time")
    parser.add_argument("--without-browser", action="store_true")
    asked = parser.parse_args()
    variants, seeds, evaluations, metrics = asked.size
    size = Size(variants=variants, seeds=seeds, evaluations=evaluations, metrics=metrics)
    with place(asked.folder) as folder:
        found = measured(folder, size, asked.turns, with_browser=not asked.without_browser)
        if asked.many:
            many = Size(variants=asked.many, seeds=seeds, evaluations=evaluations, metrics=metrics)
            found["many"] = measured_many(folder, many, asked.turns, with_browser=not asked.without_browser)
    report = {
        "settings": {"size": asdict(size), "many_variants": asked.many, "turns": asked.turns},
        "targets": TARGETS,
        **found,
    }
    print(json.dumps(report, indent=1))
    write_record("pages_speed", report, cores_that_may_be_used=len(os.sched_getaffinity(0)))


@contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    """The folder that is given, or one that is gone afterwards."""
    if folder is not None:
        folder.mkdir(exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def measured(folder: Path, size: Size, turns: int, *, with_browser: bool) -> dict[str, Any]:
    """All that is measured of one home folder."""
    home = home_of(folder / "few", size)
    first, stored, grown = [], [], []
    for _ in range(turns):
        forget(home)
        first.append(compare(home))
    for _ in range(2 * turns):
        stored.append(compare(home))
    for turn in range(turns):
        grow(home, turn)
        grown.append(compare(home))
    found: dict[str, Any] = {
        "first_fit": asdict(Taken.of(first)),
        "compare_stored": asdict(Taken.of(stored)),
        "new_evaluation": asdict(Taken.of(grown)),
    }
    if with_browser:
        found["page"] = page_of(home, turns)
    found["load_average_after"] = os.getloadavg()
    return found


def measured_many(folder: Path, size: Size, turns: int, *, with_browser: bool) -> dict[str, Any]:
    """The same of more runs, as far as it is asked of them: kept, then opened."""
    home = home_of(folder / "many", size)
    compare(home)
    found: dict[str, Any] = {"runs": size.variants * size.seeds, "turns": turns}
    found["compare_stored"] = asdict(Taken.of([compare(home) for _ in range(turns)]))
    if with_browser:
        found["page"] = page_of(home, turns)
    found["load_average_after"] = os.getloadavg()
    return found


def home_of(path: Path, size: Size) -> Path:
    """The home folder, written unless an earlier call has left it."""
    if not path.exists():
        write_home(path, size)
    return path


def forget(home: Path) -> None:
    """Delete all that is kept of the logs."""
    for readings in home.glob("runs/*/readings"):
        shutil.rmtree(readings)


def grow(home: Path, turn: int) -> None:
    """Another evaluation at the end of one log, that of a run that goes on: the last one, one step later."""
    sweep = read_sweep(Home(home), NAME)
    log = sweep.run(sweep.plan.runs[turn].id).metrics
    row = json.loads(log.read_text().splitlines()[-1])
    row |= {"step": row["step"] + 1, "compute_gpu_hours": 1.005 * row["compute_gpu_hours"]}
    with log.open("a") as file:
        file.write(json.dumps(row) + "\n")


def compare(home: Path) -> tuple[float, float]:
    """Wall and processor seconds of `platform compare`, its workers included."""
    command = [sys.executable, "-m", "ablations.cli", "compare", NAME, f"--home={home}"]
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def page_of(home: Path, turns: int) -> dict[str, Any]:
    """The page Compare of the home folder; each turn has a server of its own, which has read nothing before."""
    from browser import CHROMIUM  # pyright: ignore[reportMissingImports]  # of tests/dashboard
    from playwright.sync_api import sync_playwright

    first, settled, again, baseline, steps, log = [], [], [], [], [], []
    heaps, memory, nodes, visits = [], [], [], []
    with sync_playwright() as playwright:
        for _ in range(turns):
            with (
                served(home) as server,
                playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as chromium,
            ):
                with tab(chromium, server) as one:
                    first.append(one.timed(one.opened))
                    rest = one.timed(one.window.settled)
                    settled.append((first[-1][0] + rest[0], first[-1][1] + rest[1]))
                with tab(chromium, server) as one:
                    again.append(one.timed(one.opened))
                    one.window.settled()
                    baseline.append(one.timed(one.against_another))
                    one.window.settled()
                    log.append(one.timed(one.made_logarithmic))
                    one.window.settled()
                    steps.append(one.timed(one.against_steps))
                    one.window.settled()
                    heaps.append(one.heap_mb())
                    nodes.append(one.window.page.evaluate("document.getElementsByTagName('*').length"))
                memory.append(server.peak_mb())
            with (
                served(home) as server,
                playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as chromium,
            ):
                for _ in range(VISITS):
                    with tab(chromium, server) as one:
                        one.opened()
                        one.window.settled()
                visits.append(server.processor_s())
                memory.append(server.peak_mb())
    return {
        "first_plot_of_a_new_server": asdict(Taken.of(first)),
        "settled_on_a_new_server": asdict(Taken.of(settled)),
        "first_plot": asdict(Taken.of(again)),
        "other_baseline": asdict(Taken.of(baseline)),
        "click_logarithmic": asdict(Taken.of(log)),
        "click_against_steps": asdict(Taken.of(steps)),
        "browser_heap_mb": round(max(heaps), 1),
        "elements_of_the_page": max(nodes),
        "server_of_fifteen_visits_processor_s": round(float(np.median(visits)), 1),
        "server_memory_mb": round(max(memory), 1),
    }


@dataclass(frozen=True, kw_only=True)
class Server:
    """`platform dashboard` at work."""

    url: str
    token: str
    pid: int

    def processor_s(self) -> float:
        """Spent so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """The most memory that it ever held."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (peak,) = (line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024 / MB


@contextmanager
def served(home: Path) -> Iterator[Server]:
    """On a free port, until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ablations.cli", "dashboard", f"--port={port}", f"--home={home}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address, _, query = process.stdout.readline().partition("http://")[2].strip().partition("/")
        wait_for(lambda: answers(port))
        yield Server(url=f"http://{address}", token=query.removeprefix("?token="), pid=process.pid)
    finally:
        process.terminate()
        process.communicate()


def answers(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Until it holds; TimeoutError when it does not for too long."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"nothing after {WAIT_S:g} s")
        time.sleep(0.02)


class Tab:
    """The page Compare in one tab that knows nothing of others."""

    def __init__(self, page: Any, server: Server) -> None:
        from browser import Window  # pyright: ignore[reportMissingImports]  # of tests/dashboard

        self.window, self.server = Window(page, server.url, server.token), server
        page.set_default_timeout(1000 * WAIT_S)
        self.devtools = page.context.new_cdp_session(page)
        self.devtools.send("Performance.enable")

    def timed(self, act: Callable[[], None]) -> tuple[float, float]:
        """Wall seconds until it is done, and seconds of the processors in server and renderer."""
        before, begun = self.processor_s(), time.monotonic()
        act()
        return time.monotonic() - begun, self.processor_s() - before

    def processor_s(self) -> float:
        """Of server and renderer so far."""
        return self.server.processor_s() + self.metric("ProcessTime")

    def metric(self, name: str) -> float:
        """One of DevTools' figures of the page."""
        found = self.devtools.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in found if one["name"] == name)

    def heap_mb(self) -> float:
        """What the page holds once what nothing refers to is gone."""
        self.devtools.send("HeapProfiler.collectGarbage")
        return self.metric("JSHeapUsedSize") / MB

    def opened(self) -> None:
        """Until the first figure is drawn."""
        self.window.page.goto(f"{self.server.url}/compare?token={self.server.token}&sweep={NAME}")
        self.drawn("plot.querySelector('.trace path')")

    def made_logarithmic(self) -> None:
        """A click on the switch below the curves."""
        self.window.page.get_by_test_id("stCheckbox").filter(has_text="Logarithmic").locator("label").click()
        self.drawn("plot._fullLayout.xaxis.type === 'log' && plot.querySelector('.trace path')")

    def against_steps(self) -> None:
        """Another axis: two clicks, and the evaluations of one run of each variant are read."""
        self.chosen("x axis", "optimiser steps")
        title = "plot._fullLayout.xaxis.title.text"
        self.drawn(f"({title} || '').includes('optimiser steps') && plot.querySelector('.trace path')")

    def against_another(self) -> None:
        """Another baseline: every difference is computed anew."""
        self.chosen("Baseline", OTHER_BASELINE)
        self.window.page.get_by_role("heading", name=f"Compared with {OTHER_BASELINE}").wait_for()

    def chosen(self, label: str, option: str) -> None:
        """Two clicks: on the list whose label begins so, and on one of its options, wherever that has moved."""
        shown = self.window.page.get_by_role("option", name=option, exact=True)
        while not shown.count():  # a list closes when the page is scrolled
            self.window.page.get_by_role("combobox", name=re.compile(rf"^{label}\b")).first.click()
        shown.dispatch_event("click")

    def drawn(self, is_drawn: str) -> None:
        """Until this holds of a `plot` on the page."""
        plots = "[...document.querySelectorAll('.js-plotly-plot')]"
        self.window.page.wait_for_function(f"() => {plots}.some(plot => plot._fullLayout && {is_drawn})")


@contextmanager
def tab(chromium: Any, server: Server) -> Iterator[Tab]:
    """In a session of its own."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    try:
        yield Tab(context.new_page(), server)
    finally:
        context.close()


if __name__ == "__main__":
    main()
