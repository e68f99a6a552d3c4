"""How a study fits its curves, as the text of one cell: the column `fit_settings` of a file of curves.

>>> settings_text(FitSettings(fit_to=1600.0, ceiling=0.98))
'{"fit_to": 1600.0, "ceiling": 0.98}'
"""

import json
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from ablations.errors import Place
from ablations.fit.options import FitOptions, FitSettings
from scalerl.plain_json import parsed_json

DEFAULT_SETTINGS = {key: value for key, value in asdict(FitSettings()).items() if key != "task"}
"""Settings that a cell may hold: a file has the curves of one task."""


def settings_text(settings: FitSettings) -> str:
    """The settings that differ from the default as a JSON object; empty if none does."""
    given = {key: value for key, value in asdict(settings).items() if value != DEFAULT_SETTINGS.get(key, value)}
    return json.dumps(given) if given else ""


def settings_in(text: str, place: Place) -> FitSettings:
    """The settings in such a text; raises FileError if it is unusable."""
    if not text:
        return FitSettings()
    try:
        given = parsed_json(text)
        if not isinstance(given, dict):
            raise ValueError("no object")
        if unknown := [key for key in given if key not in DEFAULT_SETTINGS]:
            raise ValueError(f"unknown keys {unknown}")
        found = _SETTINGS.validate_json(text, strict=True)
        FitOptions(ceiling=found.ceiling)
        if not 0 <= (0 if found.fit_from == "auto" else found.fit_from) < found.fit_to:
            raise ValueError("fit_from must not be negative, and must lie below fit_to")
    except ValueError as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        why = error if first is None else f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise place.error(
            f"found {text!r} ({why})",
            f'write a JSON object with any of {", ".join(DEFAULT_SETTINGS)}: {{"fit_to": 1600.0}}',
        ) from None
    return found


_SETTINGS = TypeAdapter(FitSettings)
