"""A ledger: lines that are only ever added, each sealed with the line before it.

    {"line": 3, "at": 1764167574.2, "kind": "run", "of": "wider", "score": 0.413, ..., "sha256": "81d2..."}

`sha256` is that of the rest of the line and of the hash before it, so that no line can be changed unseen. A line is
written at once and flushed to disk under a lock: processes that write at the same time get one order, and one that is
killed leaves whole lines, or part of a last one that nobody has been told of; the next writer removes it.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from ablations.errors import AblationsError
from scalerl.durable import naming, sync_file


@dataclass(frozen=True)
class Ledger:
    """A ledger in a file: `Ledger(Path("ablation-runs/campaigns/night/ledger.jsonl"))`."""

    path: Path

    def read(self) -> list[dict[str, Any]]:
        """All whole lines in order; AblationsError names the first that was changed since it was written."""
        found: list[dict[str, Any]] = []
        before = ""
        for number, text in enumerate(self._whole().splitlines(), start=1):
            line: Any = None
            with suppress(ValueError):
                line = json.loads(text)
            if not isinstance(line, dict) or line.get("sha256") != _seal(line, before):
                raise AblationsError(
                    f"{self.path}:{number}: changed since it was written, so nothing from this line on can be relied "
                    "on; restore the file, or start a new campaign"
                )
            before = line["sha256"]
            found.append(line)
        return found

    @contextmanager
    def locked(self) -> Iterator[list[dict[str, Any]]]:
        """All lines, while no other process adds any."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_suffix(".lock")):
            yield self.read()

    def add(self, known: Sequence[Mapping[str, Any]], lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Add lines behind the `known` ones, within `locked`; returns them as written."""
        before, written = known[-1]["sha256"] if known else "", list[dict[str, Any]]()
        for number, line in enumerate(lines, start=len(known) + 1):
            sealed = {"line": number, "at": time.time(), **line}
            before = sealed["sha256"] = _seal(sealed, before)
            written.append(sealed)
        whole = self._whole()
        with naming(self.path), self.path.open("ab") as file:
            file.truncate(len(whole))
            file.write(b"".join(json.dumps(one, allow_nan=False).encode() + b"\n" for one in written))
            file.flush()
            os.fsync(file.fileno())
        if not whole:
            sync_file(self.path.parent)
        return written

    def _whole(self) -> bytes:
        """The content up to the end of the last whole line."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        return content[: content.rfind(b"\n") + 1]


def _seal(line: Mapping[str, Any], before: str) -> str:
    rest = {name: value for name, value in line.items() if name != "sha256"}
    return hashlib.sha256(json.dumps([rest, before], sort_keys=True).encode()).hexdigest()
