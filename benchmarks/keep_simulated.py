"""How often `platform keep` errs, and how many runs it takes, in campaigns whose truth is known.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/keep_simulated.py [NUM_CAMPAIGNS]

A campaign begins with four runs of a start and tries proposals one after the other, each with one run of the best for
each of its own, until a look of `ablations.answers.keep` decides. Scores are rounded to a thousandth, as of 1,000
answers. The machine may drift with the runs that a campaign takes: `line` moves all scores by one run-to-run standard
deviation over the campaign, `wave` up and down by a quarter of one with a period of 800 runs.

    nothing        200 proposals that equal the best; asked after every run, and once after 16 runs of each
    one effect     one proposal among them is better by half, one or two standard deviations
    some better    one in ten is better by one and a half; both promises

Beside it stands the habit "keep what scored better than the best reading so far". Writes `results/keep_simulated.json`.
"""

import json
import sys
from typing import Any

import numpy as np
from record import write_record
from simulation import SEED

from ablations.answers.keep import CONCLUSIONS, JUDGED_AT, LEAST_OF_BEST, WINDOW, words_at
from ablations.answers.promise import Promise, keep_level

NUM_CAMPAIGNS, NUM_PROPOSALS = 2000, 200
SPREADS = (0.003, 0.0065, 0.014, 0.03)
LINE, WAVE, PERIOD = 1.0, 0.25, 800
RUNS_OF_A_CAMPAIGN = 2800
RESOLUTION = 0.001
DRIFTS = ("none", "line", "wave")
KEPT = CONCLUSIONS.index("keep")


class Campaigns:
    """Many campaigns side by side; a number each unless said otherwise."""

    def __init__(self, rng: np.random.Generator, num: int, *, sd: float, drift: str) -> None:
        self.rng, self.num, self.sd, self.drift = rng, num, sd, drift
        self.phase = rng.uniform(0, 2 * np.pi, num)
        self.best, self.runs = np.full(num, 0.5), np.zeros(num)
        self.recent = np.full((num, WINDOW), np.nan)
        self.squares, self.freedom = np.zeros(num), np.zeros(num)
        self.keeps: list[list[int]] = [[] for _ in range(num)]
        self.run_best(np.ones(num, bool), LEAST_OF_BEST)

    def score(self, truth: np.ndarray, where: np.ndarray) -> np.ndarray:
        """A run of each campaign in `where`."""
        self.runs[where] += 1
        moved = {
            "none": 0.0,
            "line": LINE * self.runs / RUNS_OF_A_CAMPAIGN,
            "wave": WAVE * np.sin(2 * np.pi * self.runs / PERIOD + self.phase),
        }[self.drift]
        return np.round((truth + self.sd * (moved + self.rng.normal(size=self.num))) / RESOLUTION) * RESOLUTION

    def run_best(self, where: np.ndarray, times: int) -> None:
        """Measure the best again."""
        for _ in range(times):
            moved = np.roll(self.recent, 1, axis=1)
            moved[:, 0] = self.score(self.best, where)
            self.recent[where] = moved[where]

    def of_best(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Number, mean and squares about it of the best's latest runs."""
        num = np.sum(~np.isnan(self.recent), axis=1)
        mean = np.nanmean(self.recent, axis=1)
        return num, mean, np.nansum((self.recent - mean[:, None]) ** 2, axis=1)

    def propose(self, effect: np.ndarray, level: np.ndarray, *, is_asked_once: bool) -> tuple[np.ndarray, np.ndarray]:
        """Try a proposal that is better by `effect` standard deviations; places in CONCLUSIONS, and runs."""
        truth = self.best + effect * self.sd
        word, at = np.zeros(self.num, int), np.zeros(self.num, int)
        scores, is_open = np.zeros((self.num, JUDGED_AT[-1])), np.ones(self.num, bool)
        for place, look in enumerate(JUDGED_AT):
            for number in range(JUDGED_AT[place - 1] if place else 0, look):
                running = np.ones(self.num, bool) if is_asked_once else is_open
                scores[:, number] = self.score(truth, running)
                self.run_best(running, 1)
            mean = scores[:, :look].mean(axis=1)
            own = ((scores[:, :look] - mean[:, None]) ** 2).sum(axis=1)
            num_best, mean_best, squares = self.of_best()
            freedom = self.freedom + num_best - 1 + look - 1
            sd = np.sqrt((self.squares + squares + own) / freedom)
            error = sd * np.sqrt(1 / look + 1 / num_best)
            said = words_at(place, mean - mean_best, error, freedom, level=level, margin=sd)
            decided = is_open & (said > 0)
            word[decided], at[decided], is_open = said[decided], look, is_open & ~decided
            self.squares += np.where(decided, own, 0.0)
            self.freedom += np.where(decided, look - 1, 0)
            if not is_open.any():
                break
        self.crown(word == KEPT, truth)
        return word, at

    def crown(self, kept: np.ndarray, truth: np.ndarray) -> None:
        """A kept proposal is the best from now on, and is measured afresh."""
        num, _, squares = self.of_best()
        self.squares += np.where(kept, squares, 0.0)
        self.freedom += np.where(kept, num - 1, 0)
        self.best = np.where(kept, truth, self.best)
        self.recent[kept] = np.nan
        if kept.any():
            self.run_best(kept, LEAST_OF_BEST)


def run_campaigns(
    effects: np.ndarray, rng: np.random.Generator, *, sd: float, drift: str = "none", is_asked_once: bool = False,
    promise: Promise = "at_most_one", proposals: int = NUM_PROPOSALS,
) -> dict[str, Any]:  # fmt: skip
    """Campaigns whose proposals are better by `effects`, of shape (num_campaigns, num_tried): words, and runs taken."""
    campaigns = Campaigns(rng, len(effects), sd=sd, drift=drift)
    words, taken = [], []
    for number, effect in enumerate(effects.T, start=1):
        level = np.array([keep_level(promise, number, kept, proposals=proposals) for kept in campaigns.keeps])
        word, at = campaigns.propose(effect, level, is_asked_once=is_asked_once)
        for one in np.flatnonzero(word == KEPT):
            campaigns.keeps[one].append(number)
        words.append(word)
        taken.append(at)
    return {"words": np.array(words).T, "taken": np.array(taken).T, "runs": campaigns.runs}


def shares(words: np.ndarray) -> dict[str, float]:
    """Share of each word."""
    return {word: float(np.mean(words == place)) for place, word in enumerate(CONCLUSIONS) if place}


def nothing(rng: np.random.Generator, num: int, *, sd: float, drift: str, is_asked_once: bool) -> dict[str, Any]:
    """Campaigns without any effect."""
    found = run_campaigns(np.zeros((num, NUM_PROPOSALS)), rng, sd=sd, drift=drift, is_asked_once=is_asked_once)
    keeps = (found["words"] == KEPT).sum(axis=1)
    readings = Campaigns(rng, num, sd=sd, drift=drift)
    every = np.array([readings.score(readings.best, np.ones(num, bool)) for _ in range(NUM_PROPOSALS + 1)])
    highest = np.maximum.accumulate(every, axis=0)
    return {
        "sd": sd,
        "drift": drift,
        "asked": "once" if is_asked_once else "after every run",
        "campaigns_with_at_most_one_false_keep": float(np.mean(keeps <= 1)),
        "campaigns_without_one": float(np.mean(keeps == 0)),
        "words": shares(found["words"]),
        "runs_of_a_proposal": float(found["taken"].mean()),
        "runs_of_a_campaign": float(found["runs"].mean()),
        "kept_by_best_reading": float(np.mean((every[1:] > highest[:-1]).sum(axis=0))),
    }


def one_effect(rng: np.random.Generator, num: int, *, effect: float, place: int, proposals: int) -> dict[str, Any]:
    """One proposal of a campaign is better."""
    effects = np.zeros((num, place))
    effects[:, -1] = effect
    found = run_campaigns(effects, rng, sd=0.014, proposals=proposals)
    kept = found["words"][:, -1] == KEPT
    taken = np.where(kept, found["taken"][:, -1], np.inf)
    median = float(np.median(taken))
    return {
        "effect_in_sd": effect,
        "place": place,
        "proposals": proposals,
        "median_runs_to_keep": median if np.isfinite(median) else None,
        "kept_by": {str(look): float(np.mean(taken <= look)) for look in JUDGED_AT},
        "words": shares(found["words"][:, -1]),
    }


def some_better(rng: np.random.Generator, num: int, *, promise: Promise) -> dict[str, Any]:
    """One proposal in ten is better."""
    effects = 1.5 * (rng.random((num, NUM_PROPOSALS)) < 0.1)
    found = run_campaigns(effects, rng, sd=0.014, promise=promise)
    kept = found["words"] == KEPT
    false, right = (kept & (effects == 0)).sum(axis=1), (kept & (effects > 0)).sum(axis=1)
    return {
        "promise": promise,
        "campaigns_with_at_most_one_false_keep": float(np.mean(false <= 1)),
        "share_of_keeps_that_are_false": float(np.mean(false / np.maximum(false + right, 1))),
        "better_ones_kept": float(right.sum() / (effects > 0).sum()),
    }


def main() -> None:
    num = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_CAMPAIGNS
    rng = np.random.default_rng(SEED)
    found: dict[str, Any] = {
        "nothing": [nothing(rng, num, sd=sd, drift=drift, is_asked_once=False) for sd in SPREADS for drift in DRIFTS]
        + [nothing(rng, num, sd=sd, drift="none", is_asked_once=True) for sd in SPREADS],
        "one_effect": [
            one_effect(rng, num, effect=effect, place=place, proposals=proposals)
            for proposals, place in ((200, 31), (200, 101), (60, 31), (40, 21))
            for effect in (0.5, 1.0, 2.0)
        ],
        "some_better": [some_better(rng, num, promise=promise) for promise in ("at_most_one", "fdr")],
    }
    print(json.dumps(found, indent=1))
    if num == NUM_CAMPAIGNS:
        settings = {"num_campaigns": num, "num_proposals": NUM_PROPOSALS, "seed": SEED}
        write_record("keep_simulated", {"settings": settings, "results": found})


if __name__ == "__main__":
    main()
