"""Notes and tags: what is written is read back, by every sweep that has the run, and changes nothing else."""

import json
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest
from fixtures_home import make_home

from ablations.errors import AblationsError
from ablations.findings.several_sweeps import together
from ablations.home.home import Home
from ablations.home.notes import MAX_TEXT, Note, Notes, NoteSubject, notes_by_name, notes_of_run, read_notes


def test_notes_and_tags_are_read_back_in_the_order_of_writing(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    variant = NoteSubject(home=sweep.home, folder=sweep.folder, variant="loo-loss")
    variant.add(text=" repeat with FP32\n", tags=("keep",), at=20.0)
    variant.add(text="gain is real", tags=("keep", "paper"), at=30.0)
    run = sweep.plan.variants[1].runs[1]
    NoteSubject(home=sweep.home, folder=sweep.run(run.id).path).add(text="disk was full", at=10.0)
    NoteSubject(home=sweep.home, folder=sweep.folder).add(tags=("rebuttal",), at=5.0)
    written = Notes(
        texts=(Note(at=20.0, text="repeat with FP32"), Note(at=30.0, text="gain is real")), tags=("keep", "paper")
    )
    of_run = Notes(texts=(Note(at=10.0, text="disk was full"),))
    assert [*notes_by_name(sweep)] == [
        ("loo", Notes(tags=("rebuttal",))), ("loo-loss", written), ("loo-loss-s1", of_run)
    ]  # fmt: skip
    found = read_notes(sweep)
    assert (found.sweep.tags, found.variants, found.runs) == (("rebuttal",), {"loo-loss": written}, {run.id: of_run})


def test_a_run_keeps_its_notes_in_every_sweep_and_a_variant_in_its_own(tmp_path):
    sweep = make_home(tmp_path)
    other = replace(sweep, plan=replace(sweep.plan, sweep="more", variants=sweep.plan.variants[1:]))
    other.write_plan()
    run = sweep.plan.variants[1].runs[0]
    NoteSubject(home=sweep.home, folder=sweep.run(run.id).path).add(text="disk was full", at=10.0)
    NoteSubject(home=sweep.home, folder=other.folder, variant="loo-loss").add(text="as in the paper", at=11.0)
    assert [name for name, _ in notes_by_name(sweep)] == ["loo-loss-s0"]
    assert [name for name, _ in notes_by_name(other)] == ["loo-loss", "loo-loss-s0"]
    assert read_notes(together(sweep, [other])).variants.keys() == {"loo-loss (more)"}


def test_the_notes_of_a_variant_that_the_sweep_has_lost_come_last(tmp_path):
    sweep = make_home(tmp_path)
    for name in ("gone", "loo-curriculum"):
        NoteSubject(home=sweep.home, folder=sweep.folder, variant=name).add(tags=("keep",), at=1.0)
    assert [name for name, _ in notes_by_name(sweep)] == ["loo-curriculum", "gone"]


def test_what_is_removed_leaves_no_file(tmp_path):
    sweep = make_home(tmp_path)
    subject = NoteSubject(home=sweep.home, folder=sweep.folder)
    subject.add(text="first", tags=("keep",), at=1.0)
    subject.add(text="second", at=2.0)
    with pytest.raises(AblationsError, match="no note 3; there are notes 1 to 2"):
        subject.remove(3)
    with pytest.raises(AblationsError, match="no tag 'kept'; tags are: keep"):
        subject.untag("kept")
    assert subject.remove(1) == Notes(texts=(Note(at=2.0, text="second"),), tags=("keep",))
    subject.untag("keep")
    subject.remove(1)
    assert not (sweep.folder / "notes.json").exists()


@pytest.mark.parametrize(
    ("text", "tags", "said"),
    [
        ("  ", (), "1 to 2,000 characters; found 0"),
        ("x" * (MAX_TEXT + 1), (), "found 2,001"),
        ("caf\udce9", (), "a note is text in UTF-8; found '\\udce9' after 3 characters"),
        ("fine", ("two words",), "tag 'two words': a tag is one word"),
        (None, ("",), "tag '': a tag is one word"),
    ],
)
def test_an_empty_endless_or_broken_note_and_a_tag_of_several_words_are_refused(tmp_path, text, tags, said):
    sweep = make_home(tmp_path)
    with pytest.raises(AblationsError, match=re.escape(said)):
        NoteSubject(home=sweep.home, folder=sweep.folder).add(text=text, tags=tags, at=1.0)
    assert not read_notes(sweep)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"": 3}',
        '{"dapo": {"tags": ["keep"]}, "dapo": {"tags": ["paper"]}}',
        '{"": {"tags": ["keep"], "tags": ["paper"]}}',
        *(f'{{"": {{"texts": [{{"at": {at}, "text": "x"}}]}}}}' for at in ('"now"', "NaN", "1e30", "-1e12")),
    ],
)
def test_a_file_that_holds_no_notes_is_named_and_kept(tmp_path, content):
    sweep = make_home(tmp_path)
    path = sweep.folder / "notes.json"
    path.write_text(content)
    with pytest.raises(AblationsError, match=f"{path}: not notes"):
        NoteSubject(home=sweep.home, folder=sweep.folder).add(text="more", at=1.0)
    assert path.read_text() == content


def _add(place, number):
    home = Home(place)
    NoteSubject(home=home, folder=home.sweep("loo")).add(text=f"note {number}", at=float(number))


def test_processes_that_write_at_once_lose_no_note(tmp_path):
    sweep = make_home(tmp_path)
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_add, [tmp_path] * 12, range(12)))
    assert [note.text for note in read_notes(sweep).sweep.texts] == [f"note {number}" for number in range(12)]


def test_the_file_is_plain_json_that_people_can_read(tmp_path):
    sweep = make_home(tmp_path)
    run = sweep.plan.runs[0]
    NoteSubject(home=sweep.home, folder=sweep.run(run.id).path).add(text="größer", tags=("keep",), at=1.5)
    text = (sweep.run(run.id).path / "notes.json").read_text()
    assert "größer" in text
    assert json.loads(text) == {"": {"texts": [{"at": 1.5, "text": "größer"}], "tags": ["keep"]}}
    assert notes_of_run(sweep.home, run.id).tags == ("keep",)
