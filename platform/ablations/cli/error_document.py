"""The JSON document of an error, printed by a command with `--json` in place of its result."""

from dataclasses import asdict
from typing import Any

from ablations.errors import FileError


def error_document(message: str, exit_code: int, error: BaseException | None = None) -> dict[str, Any]:
    """An error as plain data; a `FileError` also gives the place of each of its problems.

    >>> error_document("unknown sweep 'lo'", 2)
    {'error': {'message': "unknown sweep 'lo'", 'exit_code': 2}}
    """
    said: dict[str, Any] = {"message": message, "exit_code": exit_code}
    if isinstance(error, FileError):
        said["places"] = [
            asdict(problem.place) | {"found": problem.found, "right": problem.right} for problem in error.problems
        ]
    return {"error": said}
