"""The URL of an SQLite file, and the file of a URL: a path in a URL is escaped, or `?` ends it and `%20` is a blank.

    >>> sqlite_url(Path("/home/ada/runs/mlflow.db"))
    'sqlite:////home/ada/runs/mlflow.db'
    >>> sqlite_url(Path("/home/ada/runs%20a/mlflow.db"))
    'sqlite+pysqlite:////home/ada/runs%2520a/mlflow.db'

SQLAlchemy is imported inside functions: the command line must start quickly.
"""

from pathlib import Path


def sqlite_url(path: Path) -> str:
    """The URL under which SQLAlchemy, and so MLflow and Optuna, open the file."""
    from sqlalchemy.engine import URL

    plain = f"sqlite:///{path.absolute()}"
    url = URL.create("sqlite+pysqlite", database=str(path.absolute())).render_as_string(hide_password=False)
    # MLflow makes the folders of a URL that begins with sqlite:///, and reads them without taking the escapes back.
    return plain if url.partition(":")[2] == plain.partition(":")[2] else url


def sqlite_path(url: str) -> Path | None:
    """The file that a URL of SQLite means; None for any other URL and for a database in memory.

    Raises sqlalchemy.exc.ArgumentError for a URL of SQLite that cannot be read.
    """
    if not url.startswith("sqlite"):
        return None
    from sqlalchemy.engine import make_url

    database = make_url(url).database
    return None if database in (None, "", ":memory:") else Path(database)
