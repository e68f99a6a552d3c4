"""The page of commands: every option with its name, its values and its meaning."""

from ablations.cli.reference import commands_page


def section(command):
    """The part of the page that is about a command."""
    return commands_page().split(f"\n## {command}\n")[1].split("\n## ")[0]


def test_arguments_choices_bounds_and_defaults_read_as_they_are_taken():
    sweep = section("sweep")
    assert "    platform sweep FILE [OPTIONS]" in sweep
    assert "| `--executor` | `local` or `slurm` or `ray` | `local` |" in sweep
    assert "| `--jobs` | whole number, ≥ 1 |  |" in sweep
    assert "| `--dry-run` |  |  | Show the runs and stop. |" in sweep
    assert "    platform status [SWEEP] [OPTIONS]" in section("status")
    assert "| `--watch, -w` |" in section("status")
    assert "| `--seed` | whole number, ≥ 0 | `0` |" in section("train")
    assert "| `--port` | whole number, ≥ 1, ≤ 65535 | `8501` |" in section("dashboard")
