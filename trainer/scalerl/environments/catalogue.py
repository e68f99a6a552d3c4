"""The environment of a name: `guess` of this package, one of a library, as `textarena:Wordle-v0-raw`, or the user's."""

from collections.abc import Mapping
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
        made = function_of(name)
        try:
            return made(**name.parameters, **settings)
        except Exception as error:  # whatever the user's code raises
            raise OwnFailed(f"{place_of(name, made, error)}: {raised(name, error)}") from error
    library, _, inside = name.rpartition(":")
    try:
        if not library:
            return Guess(**settings)
        module = import_module(f"scalerl.environments.{ENVIRONMENT_LIBRARIES[library].module}")
        return module.made(inside, dict(settings))
    except ImportError as error:
        package = ENVIRONMENT_LIBRARIES[library].package
        raise EnvironmentUnusable(
            f"environment {name!r} cannot be imported ({error}): pip install {package}"
        ) from error
    except Exception as error:  # each library raises its own
        found = f"{error}" if isinstance(error, Rejected) else f"{type(error).__name__}: {error}"
        beside = f" with settings {dict(settings)}" if settings else ""
        raise EnvironmentUnusable(f"environment {name!r}{beside}: {found}") from error
