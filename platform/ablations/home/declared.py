"""Preregistration of a study: its claims and its design, sealed when `platform sweep` starts the study.

    sweeps/fig4a/declared.json
    [{"at": 1764167574.2, "readings": 0, "sha256": "1f0c...", "claims": [...], "design": {"reference": "scalerl",
      "variants": ["pipeline-8", ...], "seeds": [0, 1, 2], "budget_gpu_hours": 200.0}}]

The file only grows: every later change is a new entry, with the number of readings that the runs had by then. `sha256`
is that of the claims and the design, and of the hash before it, so that no entry can be changed unseen.
"""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.text import counted
from scalerl.run.run_folder import write_atomically
from scalerl.run.run_log import read_rows


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Claims and design at a start of the sweep."""

    at: float
    """Seconds since 1970."""
    readings: int
    """Evaluations after step 0 that the sweep's runs had by then."""
    sha256: str
    claims: list[dict[str, Any]]
    design: dict[str, Any]

    @property
    def when(self) -> str:
        """`before the first run, 2026-11-26 14:03 UTC`, or `after 57 readings, ...`."""
        moment = f"{datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M} UTC"
        begun = f"after {counted(self.readings, 'evaluation')}" if self.readings else "before the first run"
        return f"{begun}, {moment}"


_DECLARATIONS = TypeAdapter(list[Declaration])


def declare(sweep: StartedSweep) -> Declaration:
    """Seal the claims and the design of a sweep that is about to train; returns the first declaration of them.

    Unchanged claims and designs are not declared again.
    """
    content = {"claims": [dict(claim) for claim in sweep.plan.claims], "design": design_of(sweep)}
    content = json.loads(json.dumps(content))
    before = declarations(sweep)
    for one in before:
        if (one.claims, one.design) == (content["claims"], content["design"]):
            return one
    new = Declaration(
        at=time.time(),
        readings=readings_so_far(sweep),
        sha256=_hash(content, before[-1].sha256 if before else ""),
        **content,
    )
    written = json.dumps([asdict(one) for one in [*before, new]], indent=1)
    write_atomically(_path(sweep), written.encode())
    return new


def declarations(sweep: StartedSweep) -> list[Declaration]:
    """All declarations of a sweep, the first one first; empty before its first start.

    Raises AblationsError if the file is damaged, or was changed by hand.
    """
    path = _path(sweep)
    try:
        found = _DECLARATIONS.validate_json(path.read_bytes())
    except FileNotFoundError:
        return []
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise AblationsError(
            f"{path}: not a record of declarations ({why}); move the file away to start a new one"
        ) from None
    before = ""
    for one in found:
        if one.sha256 != _hash({"claims": one.claims, "design": one.design}, before):
            raise AblationsError(
                f"{path}: changed since it was written, so the time at which claims were declared is unknown; move "
                "the file away to start a new one"
            )
        before = one.sha256
    return found


def first_with(claim: Mapping[str, Any], found: Sequence[Declaration]) -> Declaration | None:
    """The first declaration that contains a claim; None if none does."""
    written = json.loads(json.dumps(dict(claim)))
    return next((one for one in found if written in one.claims), None)


def design_of(sweep: StartedSweep) -> dict[str, Any]:
    """Design of a study: reference, variants, seeds and compute of each run. Trials of a search are not included."""
    plan = sweep.plan
    return {
        "reference": plan.reference,
        "variants": [] if plan.search else [one.name for one in plan.variants],
        "seeds": sorted({run.seed for run in plan.runs}),
        "budget_gpu_hours": plan.budget_gpu_hours,
    }


def readings_so_far(sweep: StartedSweep) -> int:
    """Evaluations after step 0 in the logs of the sweep's runs; for a damaged log, evaluations before the damage."""
    found = 0
    for run in sweep.plan.runs:
        with suppress(ValueError):  # the run itself says so when it resumes
            for row in read_rows(sweep.run(run.id).metrics, "eval"):
                found += row.get("step", 0) > 0
    return found


def _hash(content: Mapping[str, Any], before: str) -> str:
    text = json.dumps({"claims": content["claims"], "design": content["design"], "before": before}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _path(sweep: StartedSweep) -> Path:
    return sweep.folder / "declared.json"
