"""The history of a run of this home folder."""

from ablations.diagnosis.history import History
from scalerl.run.log_fault import log_fault
from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder

KEYS_OF_ROW = ("kind", "step")


def history_of_run(folder: RunFolder, name: str) -> History:
    """The log of the run so far; for a damaged log only its fault, so that one run hides no other."""
    try:
        rows, rollouts = list(read_rows(folder.metrics)), list(read_rows(folder.rollouts))
        if any(key not in row for row in rows for key in KEYS_OF_ROW):
            raise ValueError(f"{folder.metrics}: a row without {' or '.join(KEYS_OF_ROW)}")
        if fault := log_fault(folder):
            raise ValueError(fault)
    except (ValueError, OSError) as error:
        return History(name=name, steps=(), fault=str(error))
    return History(
        name=name,
        steps=[row for row in rows if row["kind"] == "train"],
        evaluations=[row for row in rows if row["kind"] == "eval"],
        rollouts=rollouts,
        message=folder.read_status().message or "",
    )
