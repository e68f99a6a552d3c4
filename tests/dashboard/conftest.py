"""What every test of a page needs."""

import sys

import pytest


@pytest.fixture(autouse=True)
def same_main():
    """Streamlit takes the place of __main__, which processes that other tests start would run again."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
