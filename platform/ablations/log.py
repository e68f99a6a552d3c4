"""Log a training script of your own, so that the platform can compare its runs:

    import ablations

    run = ablations.start()
    ...
    run.log(step=step, compute=tokens, right=71, of=100)

In a command study (`trainer: {type: command, ...}`) folder, seed, budget and settings are those of the platform. A
script that runs by itself gets its own folder, and `platform compare FOLDER...` reads it.

Only the standard library is imported, so a copy of this file alone also works: `import log; run = log.start()`.
"""

import fcntl
import json
import math
import operator
import os
import sys
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex

LOG_VARIABLE, FOLDER_VARIABLE, SEED_VARIABLE = "ABLATIONS_LOG", "ABLATIONS_FOLDER", "ABLATIONS_SEED"
BUDGET_VARIABLE, SETTINGS_VARIABLE = "ABLATIONS_BUDGET", "ABLATIONS_SETTINGS"
ATTEMPT_VARIABLE = "ABLATIONS_ATTEMPT"
"""Name of the attempt of a run that the platform has started, the same for all processes of its program."""
OWN_LOG, ABOUT_FILE, WRITER_FILE = "metrics.jsonl", "run.json", ".ablations-writer"
CLOCK_ERROR_S = 0.1
"""Difference allowed between the start of a process and the time of a file."""
OWN_FOLDERS = "own-runs"
"""Folder of the runs of scripts that the platform did not start."""
OTHER_PROCESS_LIMIT_S = 30.0
"""Time to wait for a process of an earlier attempt that still saves its checkpoint."""
ONE_PROCESS = "call start() in one process only, such as rank 0"
AGREEMENT = 1e-6
"""Difference allowed between `score` and `right / of`, for rounding."""


class OwnRun:
    """One run of a script; `start` makes it.

    The log is written by one process: in a script with several, only the first calls `start`.
    """

    folder: Path
    """Folder of the run, for checkpoints and anything else that the script keeps."""
    seed: int
    budget: float | None
    """Compute at which the platform ends the run; None in a script that runs by itself without a budget."""
    settings: dict[str, Any]
    """The configuration with the overrides of the variant."""

    def __init__(
        self, folder: Path, log: Path, *, seed: int, budget: float | None, settings: dict[str, Any], durable: bool
    ) -> None:
        self.folder, self.seed, self.budget, self.settings = folder, seed, budget, settings
        self._durable = durable
        folder.mkdir(parents=True, exist_ok=True)
        # Not a touch: the time of the last row says whether another process has logged meanwhile.
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT, 0o666))
        self._file = log.open("r+b")
        weakref.finalize(self, self._file.close)
        self._refuse_second_process()
        size = os.fstat(self._file.fileno()).st_size
        has_waited = self._hold()
        self._refuse_second_process()
        if has_waited and ATTEMPT_VARIABLE not in os.environ and os.fstat(self._file.fileno()).st_size > size:
            raise ValueError(f"{self._file.name}: another process has logged this run in the meantime; {ONE_PROCESS}")
        (folder / WRITER_FILE).write_text(f"{os.environ.get(ATTEMPT_VARIABLE, '')} {os.getpid()}")
        self._rows = self._whole_rows()
        """Step, compute, seconds and first byte of each row of the log."""
        self._has_logged = False
        self._began = time.monotonic()

    def log(
        self,
        *,
        step: SupportsIndex,
        compute: SupportsFloat,
        score: SupportsFloat | None = None,
        right: SupportsIndex | Iterable[SupportsIndex] | None = None,
        of: SupportsIndex | Iterable[SupportsIndex] | None = None,
    ) -> None:
        """Append one evaluation to the log; once this returns, a crash of the script cannot lose the row.

        `score` is the pass rate, from 0 to 1. `right` of `of` answers, whole numbers, give the score and its noise; a
        list of both, with one entry per held-out prompt, gives the noise exactly. `compute` is the compute since the
        start of training, over all attempts, and grows with `step`.

        After a restart, the first logged step shows where the script has resumed: earlier rows stay, and rows from this
        step on are replaced. Raises ValueError for invalid numbers, which are not logged.
        """
        row = _row(step, compute, score, right, of)
        kept, end = self._kept(row["step"])
        before = kept[-1] if kept else None
        if before and row["step"] <= before[0]:
            raise ValueError(
                f"step {row['step']}: step {before[0]} is already logged; log each step once, in order. A resumed "
                "script may go back only with its first row"
            )
        if before and row["compute_gpu_hours"] <= before[1]:
            raise ValueError(
                f"step {row['step']}: compute {row['compute_gpu_hours']:g} is not above the {before[1]:g} of step "
                f"{before[0]}; compute counts from the start of training, over all attempts of the run"
            )
        row["wall_s"] = round((before[2] if before else 0.0) + time.monotonic() - self._began, 3)
        self._file.truncate(end)
        self._file.seek(end)
        self._file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        self._file.flush()
        if self._durable:
            os.fsync(self._file.fileno())
        self._has_logged = True
        self._began = time.monotonic()
        self._rows = [*kept, (row["step"], row["compute_gpu_hours"], row["wall_s"], end)]

    def _kept(self, step: int) -> tuple[list[tuple[int, float, float, int]], int]:
        """The rows that stay if `step` is logged next, and the byte at which the log then ends."""
        kept = self._rows
        if not self._has_logged:
            kept = [row for row in kept if row[0] < step]
        end = self._rows[len(kept)][3] if len(kept) < len(self._rows) else self._file.seek(0, os.SEEK_END)
        return kept, end

    def _refuse_second_process(self) -> None:
        """Raise ValueError if another process of the program logs this attempt, or has logged it while this one ran.

        A program that starts its training again, after a crash or by itself, does so with a process that begins later.
        """
        try:
            attempt, pid = (self.folder / WRITER_FILE).read_text().split()
        except (OSError, ValueError):
            return
        if attempt != os.environ.get(ATTEMPT_VARIABLE) or int(pid) == os.getpid():
            return
        began = _began_at()
        if began is not None and os.fstat(self._file.fileno()).st_mtime > began + CLOCK_ERROR_S:
            raise ValueError(f"{self._file.name}: process {pid} of this program logs the run already; {ONE_PROCESS}")

    def _hold(self) -> bool:
        """Keep other processes from writing this log; True if one did before."""
        deadline, has_waited = time.monotonic() + OTHER_PROCESS_LIMIT_S, False
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return has_waited
            except BlockingIOError:
                has_waited = True
                if time.monotonic() > deadline:
                    raise ValueError(
                        f"{self._file.name}: another process logs this run; end that process, or {ONE_PROCESS}"
                    ) from None
                time.sleep(0.1)

    def _whole_rows(self) -> list[tuple[int, float, float, int]]:
        """The rows of the log, without a last row that a crash has cut short, which is removed."""
        rows, start = [], 0
        for number, line in enumerate(self._file.read().splitlines(keepends=True), start=1):
            if not line.endswith(b"\n"):
                break
            try:
                row = json.loads(line)
                rows.append((row["step"], row["compute_gpu_hours"], row["wall_s"], start))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{self._file.name}:{number}: not a row of this log ({error}); remove the line, or the file to "
                    "begin again"
                ) from None
            start += len(line)
        self._file.truncate(start)
        return rows


def start(
    folder: str | Path | None = None,
    *,
    seed: int = 0,
    budget: float | None = None,
    settings: dict[str, Any] | None = None,
    durable: bool = False,
) -> OwnRun:
    """Begin or resume the log of this run.

    The arguments are for a script that runs by itself: in a command study, folder, seed, budget and settings are the
    platform's. By default the folder is `own-runs/NAME-OF-THE-SCRIPT/DATE-AND-TIME`; passing the folder of an earlier
    run resumes its log. With `durable` every row also survives a power cut, which costs a write to the disk per row.

    Raises ValueError if another process logs the run, or if the log is damaged.
    """
    if LOG_VARIABLE in os.environ:
        return OwnRun(
            Path(os.environ[FOLDER_VARIABLE]),
            Path(os.environ[LOG_VARIABLE]),
            seed=int(os.environ[SEED_VARIABLE]),
            budget=float(os.environ[BUDGET_VARIABLE]),
            settings=json.loads(os.environ[SETTINGS_VARIABLE]),
            durable=durable,
        )
    script = Path(sys.argv[0]).stem or "script"
    path = Path(folder) if folder else Path(OWN_FOLDERS, script, f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    run = OwnRun(path, path / OWN_LOG, seed=seed, budget=budget, settings=settings or {}, durable=durable)
    about = {"seed": seed, "budget": budget, "settings": run.settings}
    (path / ABOUT_FILE).write_text(json.dumps(about, indent=1))
    return run


def _began_at() -> float | None:
    """Time at which this process began, in seconds since 1970; None where the system does not say."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        up_s = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")


def _row(step: Any, compute: Any, score: Any, right: Any, of: Any) -> dict[str, Any]:
    """The row of an evaluation, checked."""
    number = _whole(step, "step")
    spent = _finite(compute, f"step {number}: compute")
    if (right is None) != (of is None):
        raise ValueError(f"step {number}: pass both right and of, or neither")
    counted = {} if right is None else _counted(right, of, number)
    if score is None and not counted:
        raise ValueError(f"step {number}: nothing to log; pass score, or right and of")
    of_counts = counted.pop("pass_rate", 0.0)
    rate = of_counts if score is None else _finite(score, f"step {number}: score")
    if rate > 1:
        raise ValueError(f"step {number}: score is {rate:g}; a pass rate lies in [0, 1]")
    if counted and abs(rate - of_counts) > AGREEMENT:
        raise ValueError(f"step {number}: score is {rate:g}, but right / of is {of_counts:g}; omit one")
    return eval_row(number, spent, rate, counted)


def eval_row(step: int, compute: float, pass_rate: float, counts: dict[str, Any]) -> dict[str, Any]:
    """An evaluation as a row of the run log; every log that does not come from our own trainer gets its rows here."""
    head = {"kind": "eval", "step": step, "compute_gpu_hours": compute, "task": "score", "pass_rate": pass_rate}
    return head | counts


def _counted(right: Any, of: Any, step: int) -> dict[str, Any]:
    """The columns of the answers: of all together, or prompt by prompt."""
    by_prompt = _is_list(right)
    if by_prompt != _is_list(of):
        raise ValueError(f"step {step}: right and of are both whole numbers, or both lists with an entry per prompt")
    rights = [_whole(one, f"step {step}: right") for one in (right if by_prompt else [right])]
    judged = [_whole(one, f"step {step}: of") for one in (of if by_prompt else [of])]
    if len(rights) != len(judged) or not judged:
        raise ValueError(f"step {step}: right has {len(rights)} entries and of has {len(judged)}; one per prompt")
    for one, most in zip(rights, judged, strict=True):
        if one > most:
            raise ValueError(f"step {step}: {one} right answers of {most}; right must be at most of")
    if sum(judged) == 0:
        raise ValueError(f"step {step}: of is 0; an evaluation needs at least one answer")
    row: dict[str, Any] = {"pass_rate": sum(rights) / sum(judged), "num_samples": sum(judged)}
    if not by_prompt:
        return row | {"num_prompts": sum(judged)}
    return row | {"num_prompts": len(judged), "prompt_counts": _counts_text(rights, judged)}


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0  # a number of NumPy or torch has no dimension


def _counts_text(right: list[int], judged: list[int]) -> str:
    """Right answers by prompt, in the form of `scalerl.evaluation.prompt_counts`: "8:8705"."""
    most = max(judged)
    width = len(_base_36(most))
    parts = [str(most), "".join(_base_36(one).zfill(width) for one in right)]
    if any(one != most for one in judged):
        parts.append("".join(_base_36(one).zfill(width) for one in judged))
    return ":".join(parts)


def _base_36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, last = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[last] + digits
    return digits


def _whole(value: Any, name: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; must be a whole number") from None
    if number < 0:
        raise ValueError(f"{name} is {number}; must not be negative")
    return number


def _finite(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; must be a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}, which is not a finite number; has the training diverged?")
    if number < 0:
        raise ValueError(f"{name} is {number:g}; must not be negative")
    return number
