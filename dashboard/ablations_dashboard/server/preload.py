"""What the server does before anybody asks: it imports what pages are drawn with, and reads what is kept of a sweep.

Plotly, pandas and SciPy take more than a second to import, and 2,000 runs some seconds to read and compare. Both begin
in a thread when the server does, while the browser still loads Streamlit's own scripts.

    python -m ablations_dashboard.server.preload APP_FILE [FLAGS OF STREAMLIT ...]
"""

import sys
from contextlib import suppress
from threading import Lock, Thread

from ablations.errors import AblationsError

IMPORTING = Lock()
"""Held while the thread imports: two threads that import at once may see half of a module."""


def work_ahead() -> Thread:
    """Begin in a thread that ends with this process; `IMPORTING` is held until its imports are done."""
    IMPORTING.acquire()
    thread = Thread(target=_work, daemon=True)
    thread.start()
    return thread


def _work() -> None:
    try:
        from ablations.home.home import find_home
        from ablations_dashboard.reading.cache import read_ahead
        from ablations_dashboard.views import compare, forecast, paper, recipes, run, search, sweeps  # noqa: F401
    finally:
        IMPORTING.release()
    home = find_home(None)
    with suppress(AblationsError, OSError, ValueError):  # the page of whoever asks for it says what is wrong
        for name in home.sweep_names()[:1]:  # the one last started, which pages show by default
            read_ahead(home.path, name)


def main() -> None:
    """Serve the pages."""
    from streamlit.web.cli import main as streamlit

    from ablations_dashboard.server import preload

    preload.work_ahead()  # not of __main__, which Streamlit replaces
    streamlit(["run", *sys.argv[1:]])


if __name__ == "__main__":
    main()
