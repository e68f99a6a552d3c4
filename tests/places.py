"""Where the tests find what lies in the repository."""

from pathlib import Path

TESTS = Path(__file__).parent
DATA = TESTS / "data"
REPOSITORY = TESTS.parent
RECIPES = REPOSITORY / "recipes"
