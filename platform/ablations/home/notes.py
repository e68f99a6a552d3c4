"""What people have written about a sweep, its variants and its runs: `notes.json` in the folder of the sweep, and in
that of each run, which all sweeps share.

    {"": {"texts": [{"at": 1764167574.2, "text": "repeat with FP32"}], "tags": ["keep"]}, "dapo": {...}}

The empty name is the sweep or run itself; the others are variants. Nothing else depends on these files: not the id of
a run, a fit, a comparison or a forecast.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock
from pydantic import ConfigDict, Field, TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.home.home import Home
from ablations.home.labels import run_name
from ablations.home.started_sweep import StartedSweep
from scalerl.run.run_folder import write_atomically

NOTES_FILE = "notes.json"
ITSELF = ""
"""The name under which a file keeps the notes on its sweep or run."""
TAG = re.compile(r"[\w.+-]{1,50}")
NO_TEXT = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes on a command line that are not UTF-8; no file can hold it."""
MAX_TEXT = 2000
"""Limit on the characters of one note, so that it can be a tag in MLflow."""
KNOWN_ONLY = ConfigDict(extra="forbid")
"""Another key is refused, since the next note would be written without it."""
LAST_TIME = 2.5e11
"""Seconds from 1970 to the year 9892; calendars here end with 9999."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """One note: `Note(at=1764167574.2, text="repeat with FP32")`."""

    __pydantic_config__ = KNOWN_ONLY

    at: Annotated[float, Field(ge=0, le=LAST_TIME)]
    """Time of writing, in seconds since 1970."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Notes:
    """The notes and tags of one sweep, variant or run: `Notes(texts=(Note(...),), tags=("keep",))`."""

    __pydantic_config__ = KNOWN_ONLY

    texts: tuple[Note, ...] = ()
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.tags)

    @property
    def text(self) -> str:
        """All notes as one text, the first written first."""
        return "\n".join(one.text for one in self.texts)

    def with_more(self, other: "Notes") -> "Notes":
        """These notes and those of another home folder, each once, in the order of writing."""
        texts = sorted(dict.fromkeys([*self.texts, *other.texts]), key=lambda one: one.at)
        return Notes(texts=tuple(texts), tags=tuple(dict.fromkeys([*self.tags, *other.tags])))


@dataclass(frozen=True, kw_only=True)
class SweepNotes:
    """Everything written about a sweep: `SweepNotes(variants={"dapo": Notes(tags=("keep",))})`."""

    sweep: Notes = field(default_factory=Notes)
    variants: Mapping[str, Notes] = field(default_factory=dict)
    """The notes of each variant that has any, by its name."""
    runs: Mapping[str, Notes] = field(default_factory=dict)
    """The notes of each run that has any, by its id."""

    def __bool__(self) -> bool:
        return bool(self.sweep or self.variants or self.runs)


_WRITTEN = TypeAdapter(dict[str, Notes])


def read_notes(sweep: StartedSweep) -> SweepNotes:
    """The notes on a sweep, its variants and its runs, also on those of the sweeps beside it."""
    own = _shown(sweep.folder)
    variants = {name: notes for name, notes in own.items() if name != ITSELF}
    for other in sweep.beside:
        theirs = _shown(sweep.home.sweep(other))
        variants |= {f"{name} ({other})": notes for name, notes in theirs.items() if name != ITSELF}
    runs = {run.id: notes_of_run(sweep.home, run.id) for run in sweep.plan.runs}
    return SweepNotes(
        sweep=own.get(ITSELF, Notes()),
        variants=variants,
        runs={run_id: notes for run_id, notes in runs.items() if notes},
    )


def notes_of_run(home: Home, run_id: str) -> Notes:
    """The notes on one run."""
    return _shown(home.run(run_id).path).get(ITSELF, Notes())


def notes_of_sweep(sweep: StartedSweep) -> Notes:
    """The notes on a sweep as a whole."""
    return notes_of_variant(sweep, ITSELF)


def notes_of_variant(sweep: StartedSweep, variant: str) -> Notes:
    """The notes on one variant of a sweep."""
    return _shown(sweep.folder).get(variant, Notes())


def notes_by_name(sweep: StartedSweep) -> Iterator[tuple[str, Notes]]:
    """The notes under the names of what they are about: the sweep, then each variant followed by its runs.

    A variant that the sweep no longer has comes last.
    """
    found = read_notes(sweep)
    if found.sweep:
        yield sweep.name, found.sweep
    for variant in sweep.plan.variants:
        if notes := found.variants.get(variant.name):
            yield variant.name, notes
        for run in variant.runs:
            if notes := found.runs.get(run.id):
                yield run_name(variant.name, run.seed), notes
    planned = {variant.name for variant in sweep.plan.variants}
    yield from ((name, notes) for name, notes in found.variants.items() if name not in planned)


@dataclass(frozen=True, kw_only=True)
class NoteSubject:
    """What a note is about: `NoteSubject(home=home, folder=home.sweep("loo"), variant="dapo")`."""

    home: Home
    folder: Path
    """The folder of the sweep or run."""
    variant: str = ITSELF

    def read(self) -> Notes:
        return _read(self.folder).get(self.variant, Notes())

    def add(self, *, text: str | None = None, tags: tuple[str, ...] = (), at: float) -> Notes:
        """Add a note and tags; returns all. AblationsError for a text or a tag that cannot be used."""
        if text is not None and not 0 < len(text.strip()) <= MAX_TEXT:
            raise AblationsError(f"a note has 1 to {MAX_TEXT:,} characters; found {len(text.strip()):,}")
        if text is not None and (byte := NO_TEXT.search(text)):
            raise AblationsError(f"a note is text in UTF-8; found {byte[0]!r} after {byte.start():,} characters")
        for tag in tags:
            if not TAG.fullmatch(tag):
                raise AblationsError(f"tag {tag!r}: a tag is one word of up to 50 letters, digits and . _ + -")
        texts = () if text is None else (Note(at=at, text=text.strip()),)
        return self._change(lambda notes: notes.with_more(Notes(texts=texts, tags=tags)))

    def remove(self, number: int) -> Notes:
        """Remove a note by its number, from 1; AblationsError if there is none."""

        def without(notes: Notes) -> Notes:
            if not 1 <= number <= len(notes.texts):
                raise AblationsError(f"there is no note {number}; {_numbered(notes)}")
            return replace(notes, texts=notes.texts[: number - 1] + notes.texts[number:])

        return self._change(without)

    def untag(self, tag: str) -> Notes:
        """Remove a tag; AblationsError if there is no such tag."""

        def without(notes: Notes) -> Notes:
            if tag not in notes.tags:
                raise AblationsError(f"there is no tag '{tag}'; tags are: {', '.join(notes.tags) or 'none'}")
            return replace(notes, tags=tuple(one for one in notes.tags if one != tag))

        return self._change(without)

    def _change(self, change: Callable[[Notes], Notes]) -> Notes:
        with _locked(self.home):
            every = _read(self.folder)
            notes = change(every.get(self.variant, Notes()))
            _write(self.folder, every | {self.variant: notes})
        return notes


def join_notes(home: Home, folder: Path, other: Path) -> None:
    """Add the notes in another folder of the same run or sweep to those in `folder`."""
    with _locked(home):
        own, theirs = _read(folder), _read(other)
        joined = own | {name: own.get(name, Notes()).with_more(notes) for name, notes in theirs.items()}
        if joined != own:
            _write(folder, joined)


def _numbered(notes: Notes) -> str:
    return f"there are notes 1 to {len(notes.texts)}" if notes.texts else "there are none"


@contextmanager
def _locked(home: Home) -> Iterator[None]:
    """No other process writes notes in this home folder."""
    home.require_writable()
    with FileLock(home.path / "notes.lock"):
        yield


def _read(folder: Path) -> dict[str, Notes]:
    """The notes in a folder by what they are about; empty without a file."""
    path = folder / NOTES_FILE
    try:
        return checked(json.loads(path.read_bytes(), object_pairs_hook=_each_once), _WRITTEN)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        raise AblationsError(f"{path}: not notes ({error}); correct the file, or delete it with its notes") from error


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; ValueError for a key that occurs twice, since one of its values would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return found


def _shown(folder: Path) -> dict[str, Notes]:
    """The notes in a folder, to be read only; a file that cannot be read is said in the place of its notes, so that it
    hides nothing else of a sweep."""
    try:
        return _read(folder)
    except (AblationsError, OSError) as error:
        return {ITSELF: Notes(texts=(Note(at=folder.stat().st_mtime, text=f"The notes cannot be read. {error}"),))}


def _write(folder: Path, notes: Mapping[str, Notes]) -> None:
    content = {name: asdict(one) for name, one in notes.items() if one}
    if content:
        write_atomically(folder / NOTES_FILE, json.dumps(content, indent=1, ensure_ascii=False).encode())
    else:
        (folder / NOTES_FILE).unlink(missing_ok=True)
