"""Requests to read a run or fit a curve: here, or by a worker process that receives a line of JSON."""

import base64
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ablations.files.trees import tree_bytes, tree_from_bytes
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings
from ablations.readings.kept import kept_tree, read_kept_tree
from ablations.readings.run_reading import (
    CLASSES,
    NAMED,
    RunReading,
    code_of_readings,
    kept_reading,
    read_kept,
    try_fit,
)
from scalerl.run.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    """A run and how to read it: `WantedRun(folder=home.run("3f0c9a1b2d4e"), name="scalerl-s0", settings=settings)`."""

    folder: RunFolder
    name: str
    settings: FitSettings

    def line(self) -> bytes:
        """The request as a line for a worker."""
        content = {"folder": str(self.folder.path), "name": self.name, "settings": asdict(self.settings)}
        return json.dumps(content).encode() + b"\n"

    def kept(self) -> RunReading | None:
        """The saved reading, if any, else None."""
        return read_kept(self.folder, self.name, self.settings)

    def read(self) -> RunReading:
        """Read the run; the reading is then saved."""
        return kept_reading(self.folder, self.name, self.settings)


@dataclass(frozen=True, kw_only=True)
class WantedCurve:
    """A curve to fit: `WantedCurve(curve=curve, settings=settings, kept_in=home.curves)`."""

    curve: Curve
    settings: FitSettings
    kept_in: Path | None
    """Folder of saved fits, each in a file named by everything that determines it; None saves none."""

    def line(self) -> bytes:
        """The request as a line for a worker."""
        content = {
            "curve": base64.b64encode(tree_bytes(self.curve)).decode(),
            "settings": asdict(self.settings),
            "kept_in": None if self.kept_in is None else str(self.kept_in),
        }
        return json.dumps(content).encode() + b"\n"

    def kept(self) -> RunReading | None:
        """The saved reading, if any, else None."""
        return None if self.kept_in is None else read_kept_tree(self._path(self.kept_in), RunReading, CLASSES, NAMED)

    def read(self) -> RunReading:
        """The curve with its fit, which is then saved if the folder is writable."""
        if self.kept_in is None:
            return self._fitted()
        return kept_tree(self._path(self.kept_in), self._fitted, RunReading, classes=CLASSES, named=NAMED)[0]

    def _fitted(self) -> RunReading:
        fit, reason = try_fit(self.curve, self.settings)
        cost = float(self.curve.compute[-1])
        # Finding outliers takes half as long as the fit, so what was found is kept with it.
        oddities = tuple(fit.oddities) if fit else ()
        return RunReading(curve=self.curve, fit=fit, reason=reason, cost_gpu_hours=cost, hours=None, oddities=oddities)

    def _path(self, folder: Path) -> Path:
        digest = hashlib.sha256(json.dumps([code_of_readings(), asdict(self.settings)]).encode())
        digest.update(tree_bytes(self.curve))
        return folder / f"fit-{digest.hexdigest()[:16]}.npz"


Wanted = WantedRun | WantedCurve


def wanted_of_line(line: bytes) -> Wanted:
    """The inverse of `line`; NotATree if a curve is damaged."""
    asked = json.loads(line)
    settings = FitSettings(**asked["settings"])
    if "folder" in asked:
        return WantedRun(folder=RunFolder(Path(asked["folder"])), name=asked["name"], settings=settings)
    curve = tree_from_bytes(base64.b64decode(asked["curve"]), classes=(Curve,), named={})
    assert isinstance(curve, Curve), "only a curve is written"
    kept_in = None if asked["kept_in"] is None else Path(asked["kept_in"])
    return WantedCurve(curve=curve, settings=settings, kept_in=kept_in)
