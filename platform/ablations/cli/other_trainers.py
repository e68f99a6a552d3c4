"""Comparisons of runs of other trainers: from a CSV file of curves, folders, logs, or MLflow.

Commands import this module when they run, because it loads all that compares.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.findings.logged_study import study_of_logs
from ablations.findings.other_trainers import MeasuredStudy, compare_elsewhere, study_of_file, study_of_folders
from ablations.findings.results import Results
from ablations.fit.curve_file import read_scales
from ablations.fit.options import FitSettings
from ablations.home.home import find_home
from ablations.logs.meaning import LogMeaning
from ablations.logs.naming import Naming
from ablations.terminal.progress_bar import progress_bar
from ablations.tracking.measured_experiment import ExperimentNames, study_of_experiment


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Comparison of runs of other trainers: `Elsewhere(home=None, reference="grpo", settings=FitSettings())`."""

    home: Path | None
    reference: str | None
    settings: FitSettings

    def file(self, path: Path) -> Results:
        return self._compared(study_of_file(path), self.reference)

    def scales_of_file(self, path: Path) -> list[Results]:
        """Compare the curves of a CSV file with a column `scale`, at each scale."""
        if not (scales := read_scales(path)):
            raise AblationsError(f"{path}: no column 'scale'; a ladder needs the scale of every evaluation")
        return [self._compared(study_of_file(path, scale=scale), self.reference) for scale in scales]

    def logs(self, paths: Sequence[str], meaning: LogMeaning, naming: Mapping[str, Any]) -> Results:
        """Compare logs; without a reference, with the first variant, which a note says.

        Parsed logs and fits are saved in the home folder, because they take long.
        """
        if not paths:
            raise AblationsError("logs: name one file or folder per run, such as runs/*")
        kept = find_home(self.home).curves
        with suppress(OSError):  # then nothing is saved
            kept.mkdir(parents=True, exist_ok=True)
        with progress_bar("reading logs") as done:
            study = study_of_logs([Path(path) for path in paths], meaning, Naming(**naming), kept=kept, done=done)
        return self._with_first(study, kept)

    def folders(self, paths: Sequence[str]) -> Results:
        """Compare folders of runs that scripts have logged; without a reference, with the first variant."""
        return self._with_first(study_of_folders([Path(path) for path in paths]))

    def experiment(self, uri: str, experiment: str | None, meaning: LogMeaning, naming: Mapping[str, Any]) -> Results:
        if experiment is None:
            raise AblationsError("--mlflow also needs --experiment")
        meaning.check()
        study = study_of_experiment(uri, ExperimentNames(experiment=experiment, **naming), meaning)
        return self._compared(study, self.reference)

    def _with_first(self, study: MeasuredStudy, kept: Path | None = None) -> Results:
        """Compare with the reference, by default the first variant, which a note says."""
        if self.reference is not None:
            return self._compared(study, self.reference, kept)
        first = study.runs[0].variant
        said = f"The reference is {first}, the first variant given; --reference NAME chooses another."
        return self._compared(replace(study, notes=(said, *study.notes)), first, kept)

    def _compared(self, study: MeasuredStudy, reference: str | None, kept: Path | None = None) -> Results:
        with progress_bar("fitting curves") as done:
            return compare_elsewhere(study, reference, self.settings, kept=kept, done=done)
