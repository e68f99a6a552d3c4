"""The environment of a name: `guess` of this package, one of a library, as `textarena:Wordle-v0-raw`, or the user's."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from scalerl.environments.guess import Guess
from scalerl.environments.protocol import Environment
from scalerl.errors import Rejected
from scalerl.recipe.episodes import ENVIRONMENT_LIBRARIES
from scalerl.recipe.own import Own
from scalerl.recipe.own_function import OwnFailed, function_of, place_of, raised


class EnvironmentUnusable(Rejected):
    """An environment is unknown, its package is missing, or it rejects its settings."""


def make_environment(name: str | Own, settings: Mapping[str, Any]) -> Environment:
    """An environment that has not started; raises EnvironmentUnusable, or OwnFailed for a class of the user's own."""
    if isinstance(name, Own):
        return _own(name, settings)
    library, _, inside = name.partition(":")
    try:
        if not inside:
            return Guess(**settings)
        module = import_module(f"scalerl.environments.{ENVIRONMENT_LIBRARIES[library].module}")
        return module.made(inside, dict(settings))
    except Exception as error:  # each library raises its own
        found = str(error) if isinstance(error, Rejected) else f"{type(error).__name__}: {' '.join(str(error).split())}"
        if isinstance(error, ModuleNotFoundError) and error.name == library:
            found = f"{error}: pip install {ENVIRONMENT_LIBRARIES[library].package}"
        beside = f" with settings {dict(settings)}" if settings else ""
        raise EnvironmentUnusable(f"environment {name!r}{beside}: {found}") from error


def _own(own: Own, settings: Mapping[str, Any]) -> Environment:
    made = function_of(own)
    try:
        environment = made(**own.parameters, **settings)
    except Exception as error:  # whatever the user's code raises
        raise OwnFailed(f"{place_of(own, made, error)}: {raised(own, error)}") from error
    if lacks := [name for name in ("start", "act") if not callable(getattr(environment, name, None))]:
        raise OwnFailed(f"{place_of(own, made)}: {own.function_name} has no method {' and no method '.join(lacks)}")
    return environment


def known_id(name: str, ids: Iterable[str]) -> str:
    """The name, if it is among the library's ids; raises Rejected with those that are near."""
    if name in (listed := sorted(ids)):
        return name
    near = get_close_matches(name, listed, n=3, cutoff=0.5)
    raise Rejected(
        f"the library has no such id; {'near it are' if near else 'among its ids are'} {', '.join(near or listed[:8])}"
    )
