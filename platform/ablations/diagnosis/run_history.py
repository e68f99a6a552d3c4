"""The history of a run of this home folder."""

from ablations.diagnosis.history import History
from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder


def history_of_run(folder: RunFolder, name: str) -> History:
    """What the run has logged so far; raises ValueError if a line of its log is damaged."""
    rows = list(read_rows(folder.metrics))
    return History(
        name=name,
        steps=[row for row in rows if row["kind"] == "train"],
        evaluations=[row for row in rows if row["kind"] == "eval"],
        rollouts=list(read_rows(folder.rollouts)),
        message=folder.read_status().message or "",
    )
