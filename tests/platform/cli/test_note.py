"""Notes and tags as people write them on the command line, and where they are shown."""

import json

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings.results import read_results
from ablations.home.notes import read_notes
from ablations.report.documents.comparison import report_document
from ablations.report.writers.markdown import markdown_files


@pytest.fixture
def platform(tmp_path):
    """`platform("list")` is what it printed, with this exit code, in the home folder `tmp_path`."""

    def platform(*arguments, code=0):
        result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)], env={"COLUMNS": "200"})
        assert result.exit_code == code or (result.exception is not None and code == 2), result.output
        return result.stdout if code == 0 else str(result.exception)

    return platform


@pytest.fixture
def noted(platform, tmp_path):
    """A sweep with a note on itself, on a variant and on a run."""
    sweep = make_home(tmp_path, seeds=(0, 1))
    platform("note", "loo", "for the rebuttal", "--tag", "paper")
    platform("note", "loo-loss", "repeat with FP32")
    platform("note", "loo-loss-s1", "disk was full", "--tag", "odd", "--tag", "keep")
    return sweep


def test_a_note_finds_sweeps_variants_and_runs_by_their_names(platform, noted):
    printed = platform("note").splitlines()
    rows = [line.split() for line in printed if line.split()[:1] in (["loo"], ["loo-loss"], ["loo-loss-s1"])]
    assert [row[0] for row in rows] == ["loo", "loo-loss", "loo-loss-s1"]
    assert [" ".join(row).endswith(said) for row, said in zip(
        rows, ("for the rebuttal", "repeat with FP32", "disk was full"), strict=True
    )] == [True, True, True]  # fmt: skip
    assert "odd, keep" in platform("note", "loo-loss-s1")
    assert platform("note", "scalerl") == "There are no notes on scalerl.\n"
    run = noted.plan.variants[1].runs[1].id
    (one,) = json.loads(platform("note", run, "--json"))
    assert (one["tags"], [text["text"] for text in one["texts"]]) == (["odd", "keep"], ["disk was full"])


def test_notes_and_tags_are_removed_by_number_and_name(platform, noted):
    platform("note", "loo-loss", "second")
    assert "1 " in platform("note", "loo-loss")
    platform("note", "loo-loss", "--remove", "1")
    platform("note", "loo-loss-s1", "--untag", "odd")
    found = read_notes(noted)
    assert [one.text for one in found.variants["loo-loss"].texts] == ["second"]
    assert [one.tags for one in found.runs.values()] == [("keep",)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["loo-los"], "unknown run or variant 'loo-los' of sweep 'loo'; did you mean 'loo-loss'?"),
        (["lo0", "text"], "; sweeps are: loo"),
        (["loo-loss", "--remove", "7"], "there is no note 7; there are notes 1 to 1"),
        (["loo-loss", "text", "--remove", "1"], "--remove 1 has no effect with a note or tag to add"),
        (["loo-loss", "text", "--sweep", "more"], "unknown sweep 'more'"),
    ],
)
def test_what_cannot_be_noted_is_refused_with_what_there_is(platform, noted, arguments, said):
    assert said in platform("note", *arguments, code=2)


def test_json_has_the_notes_after_the_change(platform, noted):
    (one,) = json.loads(platform("note", "loo-loss", "more", "--tag", "x", "--json"))
    assert (one["about"], [text["text"] for text in one["texts"]][-1], one["tags"][-1]) == ("loo-loss", "more", "x")


def test_notes_that_cannot_be_read_are_said_and_hide_nothing_else(platform, noted):
    run = noted.run(noted.plan.variants[1].runs[0].id)
    (run.path / "notes.json").write_text("{")
    before = json.loads(platform("status", "--json"))
    said = {one["about"]: [text["text"] for text in one["texts"]] for one in before["notes"]}
    assert len(before["runs"]) == len(noted.plan.runs)
    assert "loo-loss" in said
    (text,) = said["loo-loss-s0"]
    assert text.startswith(f"The notes cannot be read. {run.path / 'notes.json'}: not notes (")
    assert text.endswith("; correct the file, or delete it with its notes")
    assert "The notes cannot be read" in platform("status")
    assert "not notes" in platform("note", "loo-loss-s0", "more", code=2)


def test_a_run_that_has_not_started_is_refused(platform, tmp_path):
    sweep = make_home(tmp_path)
    (sweep.run(sweep.plan.runs[0].id).path / "status.json").unlink()
    assert "has not started; write the note on its variant" in platform("note", "scalerl-s0", "text", code=2)


def test_status_and_report_show_notes_and_no_result_changes(platform, tmp_path):
    from datetime import UTC, datetime

    sweep = make_home(tmp_path, seeds=(0, 1))
    before = json.dumps(read_results(sweep).to_json())
    platform("note", "loo-loss", "repeat with FP32", "--tag", "keep")
    platform("note", "loo-loss-s1", "disk was full")
    assert "loo-loss [keep]: repeat with FP32" in platform("status")
    notes = json.loads(platform("status", "--json"))["notes"]
    assert [(one["about"], one["tags"]) for one in notes] == [("loo-loss", ["keep"]), ("loo-loss-s1", [])]
    results = read_results(sweep)
    assert json.dumps(results.to_json()) == before
    text = markdown_files(report_document(results, now=datetime(2026, 1, 1, tzinfo=UTC)), "report.md")["report.md"]
    _, _, section = text.decode().partition("## Notes")
    assert "repeat with FP32" in section
    assert "disk was full" in section


def test_of_many_notes_status_shows_six_and_says_where_the_others_are(platform, tmp_path):
    make_home(tmp_path, seeds=tuple(range(8)))
    for seed in range(8):
        platform("note", f"scalerl-s{seed}", f"looked at {seed}")
    printed = platform("status")
    assert [f"looked at {seed}" in printed for seed in range(8)] == [True] * 6 + [False] * 2
    assert f"To see the notes on 2 more variants and runs, run `platform note loo --home {tmp_path}`." in printed


def test_a_file_with_keys_that_a_new_note_would_lose_is_refused_and_kept(platform, noted):
    written = '{"": {"texts": [{"at": 1, "text": "kept", "by": "ada"}], "tags": []}}'
    (noted.folder / "notes.json").write_text(written)
    assert "by" in platform("note", "loo", "another", code=2)
    assert (noted.folder / "notes.json").read_text() == written
    assert "The notes cannot be read." in read_notes(noted).sweep.text
