"""Why a run is not training, and the command that fixes it."""

from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.status.rows import RunRow
from ablations.text import capitalised
from ablations_dashboard.escape import in_code, in_markdown


def what_to_do(sweep: StartedSweep, row: RunRow) -> str:
    """Why the run is not training or is unfinished, and the command to fix it; empty if there is nothing to do."""
    state = row.state
    said = f" {in_markdown(capitalised(state.message))}." if state.message else ""
    because = f": {in_markdown(state.message)}" if state.message else ""
    again = in_code(start_command(sweep))
    logs = in_code(f"platform logs {row.id} {sweep.home.option}")
    match state.state:
        case State.DONE | State.RUNNING:
            return said.strip()
        case State.STALE:
            return (
                f"The run's process died without a message.{said} {again} resumes it from its checkpoint; "
                f"{logs} shows its log."
            )
        case State.STOPPED:
            return f"The run ended before its budget.{said}"
        case State.QUEUED | State.REQUEUED | State.PENDING:
            return f"The run has not started yet.{said} If nothing starts it, {again} does."
        case State.CANCELLED | State.PREEMPTED:
            return f"The run was asked to stop.{said} {again} resumes it from its last checkpoint."
    retry = in_code(f"platform retry {sweep.name} {sweep.home.option}")
    return f"The run ended before it was done{because}. {logs} shows why; {again} or, on Slurm, {retry} continues it."
