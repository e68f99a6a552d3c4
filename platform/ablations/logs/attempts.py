"""The attempts in a log. A killed run resumes from an earlier step, and what it logs from there replaces what the
previous attempt logged:

    step     1 2 3 ... 22 23 | 13 14 ... 40      training, killed at 23 and resumed from the checkpoint of step 12
    score    5 10 15 20      | 17 22 ... 37      of the first attempt, 15 and 20 are lost

The training columns, those with the most steps that are not the score, show how far an attempt got. Late or unordered
evaluations, and rows repeated by several writers, do not start a new attempt.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ablations.errors import AblationsError
from ablations.logs.log import Log, RowsOfLog
from ablations.logs.steps_back import places_of_resumes
from ablations.text import counted

SHARE_OF_TRAINING_STEPS, SHARE_OF_SCORE_STEPS = 0.9, 0.5
"""Minimum shares: of the training steps that a column must have, and of the score's steps that training must have."""
MOST_AT_THE_END = 3
"""Number of rows that a column may lack at the end and still count as logged."""
MOST_ATTEMPTS_SAID = 3
"""Maximum number of attempts that get a sentence each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountingRows:
    """The rows of a log without those of lost attempts: `CountingRows(log=log, steps=steps, attempt=attempt)`."""

    log: Log
    steps: np.ndarray
    """The step of each row, in the order of logging; NaN for rows that belong to none."""
    attempt: np.ndarray
    """The number of the attempt of each row, from 0."""
    places: np.ndarray
    """The place of each row in the whole log."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AttemptStart:
    """The beginning of an attempt: `AttemptStart(row=37, step=13.0, after=12.0, reached=23.0)`."""

    row: int
    step: float
    """The first step that is logged again."""
    after: float
    """The last step before it that still counts; minus infinity if none does."""
    reached: float
    """The last step of the previous attempt."""


def counting_rows(log: Log, steps: np.ndarray, score: Collection[str], needed: Collection[str]) -> CountingRows:
    """The rows that count, given the step of each row, the columns of the score and all columns that are needed.

    Raises AblationsError if steps begin again at the first and come no further, unless both parts are equal: these are
    two runs, or a resumed one has counted from its start.
    """
    if not log.restarts and _is_once_through(log, steps, score, needed):
        return CountingRows(log=log, steps=steps, attempt=np.zeros(steps.size, dtype=int), places=np.arange(steps.size))
    order = _order_of_logging(log, steps)
    is_own_order = bool((order[1:] > order[:-1]).all())
    rows = _Rows(
        steps[order],
        is_scored=sum((~np.isnan(log.columns[name]) for name in score), np.zeros(steps.size, dtype=bool))[order],
        sets=[one[order] for one in log.rows_of_columns()],
        begins=log.begins if is_own_order else (),
    )
    marked = [(row, overwritten[order]) for row, overwritten in log.restarts] if is_own_order else []
    rows.find(marked)
    for resume in rows.resumes:
        if resume.after == -np.inf:
            _check_comes_further(log, rows, order, resume, needed)
    kept = order[rows.counts]
    attempt = rows.attempt()
    if rows.counts.all() and is_own_order:
        return CountingRows(log=log, steps=steps, attempt=attempt, places=order, notes=rows.notes())
    return CountingRows(
        log=_of_rows(log, kept), steps=steps[kept], attempt=attempt[rows.counts], places=kept, notes=rows.notes()
    )


class _Rows:
    """The rows of a log in the order of logging, the attempts among them, and which of them count.

    `sets` has for each set of columns True for the rows with a value of them, `begins` the rows with which other
    processes begin to write.
    """

    def __init__(
        self, at: np.ndarray, *, is_scored: np.ndarray, sets: Sequence[np.ndarray], begins: Sequence[int]
    ) -> None:
        self.at = at
        self.training = _training(at, sets, is_scored)
        self.counts = np.ones(at.size, dtype=bool)
        self.resumes: list[AttemptStart] = []
        self._left_out: list[int] = []
        self._is_scored = is_scored & ~np.isnan(at)
        self._sets = [*sets, self._is_scored]
        self._begins = begins
        self._place = np.arange(at.size)

    def find(self, marked: Sequence[tuple[int, np.ndarray]]) -> None:
        """Find the attempts, and leave out what they replace. `marked` are rows with which an attempt begins, each with
        the rows that its writer has marked as overwritten."""
        for _, overwritten in marked:
            self.counts &= ~overwritten
        own = np.flatnonzero(self.training & self.counts)
        backs = [(int(own[place]), place) for place in self._goes_back(own)]
        for row, overwritten in marked:
            self.counts |= overwritten
            backs.append((row, -1))
        for row, place in sorted(backs):
            if place >= 0:
                self._begin(self._resume(own, place))
                continue
            overwritten = dict(marked)[row]
            if (overwritten & self.counts).any():
                self._begin_marked(row, overwritten)
        self._leave_out_late(self.at.size)
        if not np.array_equal(self.training, self._is_scored):
            for first, end in pairwise([0, *(one.row for one in self.resumes), self.at.size]):
                self._find_in_scores(np.arange(first, end))

    def attempt(self) -> np.ndarray:
        """The number of the attempt of each row."""
        begins = np.array(sorted({*self._begins, *(one.row for one in self.resumes)}))
        return np.searchsorted(begins, self._place, side="right")

    def notes(self) -> tuple[str, ...]:
        """A sentence on each of the first attempts, and one on the others."""
        said = []
        for number, (one, rows) in enumerate(zip(self.resumes, self._left_out, strict=True), start=1):
            since = f"after step {one.after:g} " if one.after > -np.inf else ""
            said.append(
                f"attempt {number} reached step {one.reached:g} and attempt {number + 1} goes on at {one.step:g}, so "
                f"{counted(rows, 'row')} {since}of attempts before it {'is' if rows == 1 else 'are'} left out"
            )
        if more := len(said[MOST_ATTEMPTS_SAID:]):
            said[MOST_ATTEMPTS_SAID:] = [f"{counted(more, 'more attempt')}, likewise"]
        return tuple(said)

    def _goes_back(self, own: np.ndarray) -> list[int]:
        is_of_training = not np.array_equal(self.training, self._is_scored)
        return places_of_resumes(self.at[own], np.searchsorted(own, self._begins).tolist(), may_stay=is_of_training)

    def _begin(self, resume: AttemptStart) -> None:
        lost = self.counts & (self._place < resume.row) & (self.at > resume.after)
        self._add(resume, lost)

    def _begin_marked(self, row: int, overwritten: np.ndarray) -> None:
        self._leave_out_late(row)
        lost = self.counts & overwritten
        step, reached = float(np.nanmin(self.at[lost])), float(np.nanmax(self.at[lost]))
        after = np.max(self.at, where=self.counts & ~lost & (self._place < row) & (self.at < step), initial=-np.inf)
        self._add(AttemptStart(row=row, step=step, after=float(after), reached=reached), lost)

    def _add(self, resume: AttemptStart, lost: np.ndarray) -> None:
        self.counts &= ~lost
        self.resumes.append(resume)
        self._left_out.append(int(lost.sum()))

    def _resume(self, own: np.ndarray, place: int) -> AttemptStart:
        """The attempt whose first row of training is `own[place]`; what stands before it may belong to it as well."""
        first, before = int(own[place]), int(own[place - 1])
        self._leave_out_late(first)
        step, earlier = self.at[first], self.at[own[:place]]
        after = float(np.max(earlier, where=earlier < step, initial=-np.inf))
        between = np.arange(before + 1, first)
        if known := [one for one in self._begins if before < one <= first]:
            row = known[0]
        elif after > -np.inf:
            row = next(iter(between[self._is_back(between)].tolist()), first)
        else:
            row = next(iter(between[self.at[between] <= step].tolist()), first)
        return AttemptStart(row=row, step=float(step), after=after, reached=float(earlier[-1]))

    def _is_back(self, between: np.ndarray) -> np.ndarray:
        """True for the rows whose columns have all come as far in this attempt; a late evaluation is the first of its
        step."""
        if not between.size:
            return np.zeros(0, dtype=bool)
        since = self.resumes[-1].row if self.resumes else 0
        before = slice(since, between[-1] + 1)
        found = self.counts[between] & ~np.isnan(self.at[between])
        for rows in self._sets:
            if rows[between].any():
                known = rows[before] & self.counts[before] & ~np.isnan(self.at[before])
                so_far = np.maximum.accumulate(np.where(known, self.at[before], -np.inf))
                found &= ~rows[between] | (self.at[between] <= np.append(-np.inf, so_far)[between - since])
        return found

    def _leave_out_late(self, end: int) -> None:
        """Leave out evaluations of a lost attempt that were logged when the last one was under way.

        They are of steps to which training has yet to come, further ahead of it than scores usually are.
        """
        if not self.resumes:
            return
        begin, at = self.resumes[-1].row, self.at
        counts, training = self.counts[:end], np.flatnonzero(self.training[:end] & self.counts[:end])
        so_far = np.full(end, -np.inf)
        for first, last in ((0, begin), (begin, end)):
            of_training = self.training[first:last] & counts[first:last]
            so_far[first:last] = np.maximum.accumulate(np.where(of_training, at[first:last], -np.inf))
        following = np.searchsorted(training, self._place[:end], side="right")
        coming = np.append(at[training], np.inf)[following]
        is_known = self._is_scored[:end] & counts & (so_far > -np.inf)
        ahead = np.where(is_known, at[:end] - np.where(is_known, so_far, 0.0), 0.0)
        of_last = is_known & (self._place[:end] >= begin)
        is_open = of_last & (at[:end] <= self.resumes[-1].reached)
        if is_open.any():
            usual = max(float(np.median(ahead[of_last])), np.max(ahead, where=is_known & ~is_open, initial=0.0))
            late = is_open & (coming < at[:end]) & (ahead > usual)
            self._left_out[-1] += int(late.sum())
            counts &= ~late

    def _find_in_scores(self, inside: np.ndarray) -> None:
        """Find attempts that no row of training shows, among scores that are ahead of training."""
        inside = inside[self.counts[inside]]
        so_far = np.maximum.accumulate(np.where(self.training[inside], self.at[inside], -np.inf))
        ahead = inside[self._is_scored[inside] & (self.at[inside] > so_far)]
        both = np.union1d(ahead, inside[self.training[inside]])
        for place in self._goes_back(ahead):
            resume = self._resume(both, int(np.searchsorted(both, ahead[place])))
            self._begin(resume)


def _training(at: np.ndarray, sets: Sequence[np.ndarray], is_scored: np.ndarray) -> np.ndarray:
    """True for the rows that say how far training is.

    They are those of the columns with the most steps, in rows without a score if there are any. Of several, those that
    are logged to the end count, and of these the fewest rows, since a column such as a time is in rows of training and
    of evaluation.
    """
    stepped = ~np.isnan(at)
    of_score = is_scored & stepped
    others = stepped & ~is_scored if np.any([rows & stepped & ~is_scored for rows in sets]) else stepped
    most = [np.unique(at[rows & others]).size for rows in sets]
    least = min(
        SHARE_OF_TRAINING_STEPS * max(most, default=0), max(most, default=0) - 1
    )  # one may be of a test at the end
    enough = [rows & stepped for rows, size in zip(sets, most, strict=True) if size and size >= least]

    def is_given_up(rows: np.ndarray) -> bool:
        last = np.flatnonzero(rows)[-1]
        after = at[last:][others[last:]]
        if after.size <= MOST_AT_THE_END:
            return False
        own = np.unique(at[rows])
        same = np.sum((own >= after.min()) & (own <= after.max()))
        return bool(np.unique(after).size >= SHARE_OF_TRAINING_STEPS * same)

    found = min(enough, key=lambda rows: (is_given_up(rows), rows.sum()), default=of_score)
    return found if np.unique(at[found]).size >= SHARE_OF_SCORE_STEPS * np.unique(at[of_score]).size else of_score


def _is_once_through(log: Log, steps: np.ndarray, score: Collection[str], needed: Collection[str]) -> bool:
    """True if steps never go back, and no column has a step twice, one of training among them."""
    at = steps[~np.isnan(steps)]
    if np.any(at[1:] < at[:-1]):
        return False
    own = {name: steps[~np.isnan(log.columns[name]) & ~np.isnan(steps)] for name in needed}
    has_training = max(map(len, own.values()), default=0) > max((own[name].size for name in score), default=0)
    return has_training and all(np.all(one[1:] > one[:-1]) for name, one in own.items() if name not in log.steps)


def _of_rows(log: Log, rows: np.ndarray) -> Log:
    """The log with these rows, in this order."""

    def labels() -> dict[str, list[str]]:
        return {name: [str(texts[row]) for row in rows.tolist()] for name, texts in log.labels().items()}

    return replace(log, columns=RowsOfLog(log.columns, rows), labels=labels)


def _order_of_logging(log: Log, steps: np.ndarray) -> np.ndarray:
    """The rows in the order of their clock, if the file has one and was sorted in another way, else in the file's."""
    own = np.arange(steps.size)
    known = steps[~np.isnan(steps)]
    if known.size == np.unique(known).size or (clock := log.clock()) is None or (clock[1:] >= clock[:-1]).all():
        return own
    by_clock = np.argsort(clock, kind="stable")
    back, back_by_clock = (int(np.sum(np.diff(one[~np.isnan(one)]) < 0)) for one in (steps, steps[by_clock]))
    return by_clock if back == 0 or back_by_clock < back else own


def _check_comes_further(
    log: Log, rows: _Rows, order: np.ndarray, resume: AttemptStart, needed: Collection[str]
) -> None:
    """Raise AblationsError if an attempt that begins at the first step comes no further and is no copy."""
    before, after = slice(None, resume.row), slice(resume.row, None)
    reached, last = (float(np.max(rows.at[part][rows.training[part]])) for part in (before, after))
    if last > reached or all(_same(log.columns[name], order[before], order[after]) for name in needed):
        return
    raise AblationsError(
        f"{log.place}: the steps begin again at {resume.step:g} after {reached:g}, and end at {last:g}: two runs are "
        "in one log, or a resumed one has counted from its start; keep the rows of one run, or name a column that "
        "counts on with --step"
    )


def _same(values: np.ndarray, before: np.ndarray, after: np.ndarray) -> bool:
    return before.size == after.size and np.array_equal(values[before], values[after], equal_nan=True)
