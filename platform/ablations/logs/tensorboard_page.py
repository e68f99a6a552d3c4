"""What TensorBoard's page hides: it drops the points of a metric from a step on that is logged later, as at a resume.

Scores of steps 10, 20, 30, 40, 50, 20 and 60 are shown as 10, 20 and 60 (tensorboard 2.21.0, data server 0.7.2).
"""

import numpy as np

from ablations.logs.attempts import counting_rows
from ablations.logs.expression import columns_of
from ablations.logs.log import Log
from ablations.logs.meaning import LogMeaning, steps_of_rows


def steps_off_page(log: Log, meaning: LogMeaning) -> set[int]:
    """The steps of scores that count and that the page does not show; empty for other files."""
    if not log.page_purges:
        return set()
    found = meaning.resolve(log.columns.keys(), log.place)
    scores = list(dict.fromkeys(columns_of(found.score)))
    counting = counting_rows(log, steps_of_rows(log, meaning, found), scores, found.columns)
    hidden: set[int] = set()
    for column in scores:
        shown: list[float] = []
        for step in counting.steps[~np.isnan(counting.log.columns[column])].tolist():
            while shown and shown[-1] > step:
                hidden.add(int(shown.pop()))
            shown.append(step)
    return hidden
