"""A sweep taken to another home folder in one file: the same numbers there, and no file believed that is not whole."""

import gzip
import io
import json
import shutil
import tarfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from filelock import FileLock
from fixtures_home import make_home, write_state

from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.home.declared import declarations, declare
from ablations.home.home import Home
from ablations.home.notes import NoteSubject, notes_of_run, read_notes
from ablations.home.plan import PlannedRun
from ablations.home.started_sweep import read_sweep
from ablations.imports.from_archive import import_sweep
from ablations.running.archive import export_sweep
from scalerl.recipe import ResolvedRecipe
from scalerl.run.warm_start import start_key
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer


def members(archive: Path) -> dict[str, bytes]:
    """Every member's content."""
    with tarfile.open(archive) as held:
        return {one.name: held.extractfile(one).read() for one in held}


def write_archive(path: Path, held: dict[str, bytes], *, kind: bytes = tarfile.REGTYPE) -> Path:
    """An archive with these members, all of this kind."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in held.items():
            member = tarfile.TarInfo(name)
            member.size, member.type, member.linkname = len(content), kind, "/etc/passwd"
            archive.addfile(member, io.BytesIO(content))
    return path


def forged(path: Path, changes: dict[str, bytes], **options) -> Path:
    """The archive of a sweep with other files."""
    return write_archive(path.with_name("forged.tar.gz"), members(path) | changes, **options)


@pytest.fixture
def exported(tmp_path):
    """A home with the sweep `loo` of six runs, and its archive."""
    sweep = make_home(tmp_path / "here", seeds=(0, 1))
    for run in sweep.plan.runs:
        (sweep.run(run.id).path / "readings").mkdir()
        (sweep.run(run.id).path / "readings" / "kept.msgpack").write_bytes(b"x")
        sweep.run(run.id).checkpoint.mkdir()
        for name in ("manifest.json", "state-0.json"):
            (sweep.run(run.id).checkpoint / name).write_text("{}")
        for name in ("losses.py", "__pycache__/losses.cpython-311.pyc"):
            file = sweep.run(run.id).own / "my_ideas" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    (sweep.folder / "sync.json").write_text("{}")
    declare(sweep)
    export_sweep(sweep, archive := tmp_path / "loo.tar.gz")
    return sweep, archive


def numbers(home: Home, name: str) -> str:
    """Everything that `platform compare --json` prints."""
    return json.dumps(read_results(read_sweep(home, name)).to_json() | {"sweep": ""})


def test_an_imported_sweep_compares_to_the_same_numbers_bit_for_bit(exported, tmp_path):
    sweep, archive = exported
    came = import_sweep(Home(tmp_path / "there"), archive)
    assert (came.num_new, came.num_here, came.with_checkpoints) == (6, 0, False)
    # A float's repr is all of it.
    assert numbers(came.sweep.home, "loo") == numbers(sweep.home, "loo")
    assert read_sweep(came.sweep.home, "loo").plan == sweep.plan
    assert declarations(came.sweep) == declarations(sweep)
    for run in sweep.plan.runs:
        for name in ("metrics.jsonl", "recipe.json", "status.json"):
            there, here = came.sweep.run(run.id).path / name, sweep.run(run.id).path / name
            assert there.read_bytes() == here.read_bytes()
            assert int(there.stat().st_mtime) == int(here.stat().st_mtime)
    assert [path.name for path in (tmp_path / "there").iterdir() if path.name.startswith(".")] == []


def test_what_a_home_makes_again_and_what_is_of_one_place_stays_there(exported):
    _, archive = exported
    held = members(archive)
    assert {Path(name).name for name in held} == {
        *("plan.json", "declared.json", "recipe.json", "status.json", "metrics.jsonl", "losses.py", "manifest.json")
    }


def test_the_warm_start_of_a_run_that_leaves_rows_out_is_exported(tmp_path):
    data = tmp_path / "sums.jsonl"
    sums = [{"question": f"What is {n} + {n}?", "answer": str(2 * n), "solution": "so"} for n in range(120)]
    repeats = [{**one, "question": one["question"].upper()} for one in sums[:5]]
    data.write_text("".join(json.dumps(one) + "\n" for one in sums + repeats))
    recipe = ResolvedRecipe.model_validate(
        {"model": {"tokenizer": "characters"}, "tasks": [{"type": "math", "path": str(data)}]}
    )
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    tasks = all_tasks(recipe.tasks, (), tokenizer)
    run = PlannedRun(seed=0, id=recipe.identity(0))
    sweep = make_home(tmp_path / "here")
    sweep = replace(sweep, plan=replace(sweep.plan, variants=(replace(sweep.plan.variants[0], runs=(run,)),)))
    sweep.write_plan()
    folder = sweep.run(run.id)
    folder.create(recipe, 0)
    write_state(sweep.home, run.id, "done")
    folder.checkpoint.mkdir()
    folder.left_out.write_text("".join(json.dumps(asdict(one)) + "\n" for one in tasks.left_out["math"]))
    start = sweep.home.warm_starts / start_key(recipe, 0, tasks.trained.newly_left_out)
    start.mkdir(parents=True)
    (start / "SHA256SUMS").write_text("")
    (folder.checkpoint / "state-0.json").write_text("{}")
    export_sweep(sweep, archive := tmp_path / "loo.tar.gz", with_checkpoints=True)
    assert f"warm_starts/{start.name}/SHA256SUMS" in members(archive)
    came = import_sweep(Home(tmp_path / "there"), archive)
    assert came.with_checkpoints
    assert (came.sweep.run(run.id).checkpoint / "state-0.json").exists()


def test_a_sweep_that_trains_is_not_exported_and_no_file_is_overwritten(exported, tmp_path):
    sweep, archive = exported
    with (
        FileLock(sweep.lock),
        pytest.raises(
            AblationsError,
            match=f"is still training or queued; run `platform cancel loo --home {sweep.home.path}` first",
        ),
    ):
        export_sweep(sweep, tmp_path / "other.tar.gz")
    with pytest.raises(AblationsError, match="already exists"):
        export_sweep(sweep, archive)
    assert [path.name for path in tmp_path.iterdir() if "other" in path.name] == []


def test_a_taken_name_needs_another_and_runs_that_are_here_stay(exported):
    sweep, archive = exported
    with pytest.raises(AblationsError, match="already has a sweep 'loo'; choose another name with --as NAME"):
        import_sweep(sweep.home, archive)
    came = import_sweep(sweep.home, archive, name="loo@again")
    assert (came.num_new, came.num_here) == (0, 6)
    assert sweep.home.sweep_names() == ["loo@again", "loo"]
    assert read_sweep(sweep.home, "loo@again").plan == replace(sweep.plan, sweep="loo@again")
    assert all((sweep.run(run.id).path / "readings").exists() for run in sweep.plan.runs)
    with pytest.raises(AblationsError, match=r"'\.\./out' is not a valid sweep name"):
        import_sweep(sweep.home, archive, name="../out")


def test_notes_travel_without_passwords_and_join_those_of_a_run_that_is_here(tmp_path):
    sweep = make_home(tmp_path / "here")
    run = sweep.plan.runs[0]
    NoteSubject(home=sweep.home, folder=sweep.folder, variant="loo-loss").add(tags=("keep",), at=1.0)
    of_run = NoteSubject(home=sweep.home, folder=sweep.run(run.id).path)
    of_run.add(text="log in with https://ada:geheim@host/", at=1.0)
    export_sweep(sweep, archive := tmp_path / "loo.tar.gz")
    of_run.add(text="disk was full", tags=("odd",), at=0.5)
    there = import_sweep(Home(tmp_path / "there"), archive).sweep
    assert read_notes(there).variants["loo-loss"].tags == ("keep",)
    assert notes_of_run(there.home, run.id).text == "log in with https://***@host/"
    export_sweep(there, again := tmp_path / "again.tar.gz")
    import_sweep(sweep.home, again, name="loo@again")
    joined = notes_of_run(sweep.home, run.id)
    assert [one.text for one in joined.texts] == [
        "disk was full", "log in with https://ada:geheim@host/", "log in with https://***@host/"
    ]  # fmt: skip
    assert joined.tags == ("odd",)


def test_a_run_that_is_here_with_another_log_is_kept_and_nothing_is_imported(exported, tmp_path):
    _, archive = exported
    other = make_home(tmp_path / "there", seeds=(0, 1), fraction=0.5)
    shutil.rmtree(other.folder)
    before = sorted(other.home.path.rglob("*"))
    with pytest.raises(AblationsError, match=r"has run \w{12} and 5 more of this sweep with a different log"):
        import_sweep(other.home, archive)
    assert sorted(other.home.path.rglob("*")) == before


def test_damage_anywhere_in_the_file_is_found_and_leaves_nothing(exported, tmp_path):
    _, archive = exported
    home, whole, bad = Home(tmp_path / "there"), archive.read_bytes(), tmp_path / "bad.tar.gz"
    damaged = [whole[: len(whole) * tenths // 10] for tenths in range(10)]
    damaged += [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(12, len(whole), 7919)]
    damaged += [b"hello", gzip.compress(b"hello"), write_archive(bad, {}).read_bytes()]
    for content in damaged:
        bad.write_bytes(content)
        with pytest.raises(AblationsError, match=r"not a complete archive of a sweep .*nothing was imported"):
            import_sweep(home, bad)
        assert list(home.path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        *("../out", "/elsewhere/out", "sweep/../../out", "runs/000000000000/../../out", "snapshots/a/b.py"),
        *("runs/000000000000/lock", "runs/000000000000/logs/attempt-1.log/x", "sweep/submissions/a.json"),
        *("runs/000000000000/model/../../../out", "runs/000000000000/own/../../../out.py"),
    ],
)
def test_a_name_that_leads_out_of_the_home_or_is_no_file_of_a_sweep_is_refused(exported, tmp_path, name):
    _, archive = exported
    with pytest.raises(AblationsError, match="is not a file of a sweep"):
        import_sweep(Home(tmp_path / "there"), forged(archive, {name: b"x"}))
    assert not list(tmp_path.rglob("out*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_no_plain_file_is_refused(exported, tmp_path, kind):
    _, archive = exported
    with pytest.raises(AblationsError, match="is not a file of a sweep"):
        import_sweep(Home(tmp_path / "there"), forged(archive, {}, kind=kind))


def test_a_plan_whose_runs_lead_elsewhere_or_that_is_of_another_sweep_is_refused(exported, tmp_path):
    sweep, archive = exported

    def with_plan(**changes) -> Path:
        replace(sweep.plan, **changes).write(tmp_path / "plan.json")
        return forged(archive, {"sweep/plan.json": (tmp_path / "plan.json").read_bytes()})

    first, *others = sweep.plan.variants
    astray = replace(first, runs=(PlannedRun(seed=0, id="../../../etc"), *first.runs[1:]))
    for changes, said in (
        ({"variants": (astray, *others)}, r"has a run '\.\./\.\./\.\./etc', which is not a run id"),
        ({"sweep": "../../out"}, r"'\.\./\.\./out' is not a valid sweep name"),
        ({"variants": (first,)}, "the plan belongs to another sweep"),
    ):
        with pytest.raises(AblationsError, match=said):
            import_sweep(Home(tmp_path / "there"), with_plan(**changes))
    assert list((tmp_path / "there").iterdir()) == []


def unbegun(sweep, run_id):
    """Leave of a run what a sweep prepares."""
    for path in sweep.run(run_id).path.iterdir():
        if path.name != "recipe.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("where", ["archive", "home"])
def test_a_run_that_one_side_has_not_begun_is_that_of_the_other(where, tmp_path):
    whole, prepared = make_home(tmp_path / "whole", seeds=(0,)), make_home(tmp_path / "prepared", seeds=(0,))
    run = whole.plan.runs[0].id
    unbegun(prepared, run)
    log = whole.run(run).metrics.read_bytes()
    source, home = (prepared, whole.home) if where == "archive" else (whole, prepared.home)
    export_sweep(source, archive := tmp_path / "loo.tar.gz")
    came = import_sweep(home, archive, name="mine")
    assert (came.num_new, came.num_here) == ((0, 3) if where == "archive" else (1, 2))
    assert home.run(run).metrics.read_bytes() == log
