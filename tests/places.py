"""Where the tests find what lies in the repository."""

from pathlib import Path

TESTS = Path(__file__).parent
DATA = TESTS / "data"
REPOSITORY = TESTS.parent
RECIPES = REPOSITORY / "recipes"

ODD_NAMES = ("what? now", "runs%20a", "#;&=+", "Gänse 日本", 'it\'s "quoted"', "{x} %(y)s 50%")
"""Names of folders that mean something in a URL, in a template or to a shell."""
