"""The pictures of every page in docs/images, light and dark, 1440 and 400 wide, of generated runs.

make images, or: PYTHONPATH=tests python -m dashboard.images [FOLDER]
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from dashboard.browser import Browser, served_in_browser
from dashboard.test_paper_page import make_study
from dashboard.test_run_page import HELD_OUT
from dashboard.test_search_page import make_record
from dashboard.texts import crowded
from fixtures_home import changed, make_home, planned_run
from places import REPOSITORY

IMAGES = REPOSITORY / "docs/images"
WIDTHS = {1440: 1100, 400: 900}
"""Height of the picture by its width."""
PAGES: dict[str, dict[str, str]] = {
    "sweeps": {},
    "compare": {"sweep": "loo"},
    "runs": {"sweep": "loo"},
    "forecast": {"sweep": "loo"},
    "run": {"sweep": "loo", "run": planned_run("loo-loss", 1).id},
    "recipes": {},
    "search": {"sweep": "batches"},
    "paper": {},
}
"""By path, what its URL selects."""


def picture_names() -> list[str]:
    """`compare-dark-400.png` and so on."""
    return [f"{page}-{theme}-{width}.png" for page in PAGES for theme in ("light", "dark") for width in WIDTHS]


def pictured_home(path: Path) -> None:
    """A study with three seeds, a run with rollouts whose policy becomes random, and a search."""
    sweep = make_home(path, seeds=(0, 1, 2))
    wrong = sweep.run(planned_run("loo-loss", 1).id)
    rows = [json.loads(line) for line in wrong.metrics.read_text().splitlines()]
    wrong.metrics.write_text("".join(json.dumps(gone_wrong(row)) + "\n" for row in rows))
    prompts = [f"3:k{digit}a2" for digit in (9, 7)]
    first = [{**answered(one, "2k9", 0), "step": 0, "verdict": "wrong", "reward": -1.0} for one in prompts]
    rollouts = [*first, *(answered(one, f"2{one[3]}a", 79) for one in prompts)]
    text = "".join(json.dumps(row) + "\n" for row in rollouts)
    wrong.rollouts.write_text(text)
    wrong.write_status(replace(wrong.read_status(), pass_rate=gone_wrong(rows[-1])["pass_rate"]))
    search = changed(sweep, sweep="batches", doc="Which batch has the highest ceiling?", search=True)
    search.write_plan()
    record = replace(make_record(), seeds=(0, 1, 2))
    record.write(search.folder)
    space = "{batch.prompts: {low: 8, high: 64, step: 8}}"
    (search.folder / "sweep.yaml").write_text(
        f"name: batches\nreference: scalerl\nscale: laptop\nsearch: {{trials: 8, space: {space}}}\n"
    )
    make_study(sweep)
    sweep.write_plan()  # the last one started is shown first


def gone_wrong(row: dict) -> dict:
    """The row with an entropy that rises from step 40 on, and a pass rate that falls after it."""
    late = max(0.0, (row["step"] - 40) / 40)
    if row["kind"] == "train":
        return {**row, "entropy": row["entropy"] + 1.6 * late, "reward_mean": 0.6 - 0.5 * late}
    return {**row, "pass_rate": row["pass_rate"] - 0.35 * late**1.5}


def answered(prompt: str, answer: str, version: int) -> dict:
    """A held-out rollout to a prompt of four symbols, of which the last two are the letter a and the digit 2."""
    text = {"prompt": [{"text": f"{prompt}<think>", "tokens": 7}]}
    text["thinking"] = [{"text": f"{answer}</think>", "tokens": 4, "version": version}]
    text["answer"] = [{"text": answer, "tokens": 4, "version": version}]
    return {**HELD_OUT, "prompt_id": prompt, "right_answer": f"2{prompt[3]}a", **text}


def take_pictures(browser: Browser, folder: Path) -> Iterator[Path]:
    """Every picture, each of a page that is whole and whose texts are clear of one another."""
    for page, query in PAGES.items():
        for theme in ("light", "dark"):
            for width, height in WIDTHS.items():
                path = folder / f"{page}-{theme}-{width}.png"
                with browser.window(dark=theme == "dark", width=width, height=height) as window:
                    window.open("" if page == "sweeps" else page, **query)
                    window.is_whole(figures=0 if page in ("sweeps", "runs", "recipes") else 1)
                    window.page.wait_for_timeout(500)
                    assert crowded(window) == [], path.name
                    window.page.screenshot(path=path)
                yield path


def main() -> None:
    folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, chdir(place):  # where ./ablation-runs needs no --home in commands
        home = Path("ablation-runs").absolute()
        pictured_home(home)
        for browser in served_in_browser(home):
            for path in take_pictures(browser, folder):
                print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
