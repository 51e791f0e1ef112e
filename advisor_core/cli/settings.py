"""Settings files as the defaults of options: ``--config``, ``--no-config``, and what commands make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from advisor_core.cli.console import EXIT_USAGE, stop

if TYPE_CHECKING:
    from advisor_core.configuration.settings import Settings
    from advisor_core.run.prepared import RunOptions
    from advisor_core.text.base import Scalar

_F = TypeVar("_F", bound=Callable[..., Any])
_SETTINGS = "npu_advisor.settings"
_FILE, _NONE = "settings_file", "no_settings"


def settings_options(**keys: str) -> Callable[[_F], _F]:
    """``--config`` and ``--no-config``. ``keys``: parameters of the command to the keys that give their defaults."""

    def decorate(command: _F) -> _F:
        def given(context: click.Context, parameter: click.Parameter, value: Any) -> None:
            context.meta[f"{_SETTINGS}.{parameter.name}"] = value
            both = [f"{_SETTINGS}.{name}" for name in (_FILE, _NONE)]
            if all(name in context.meta for name in both) and not context.resilient_parsing:
                settings = _read(*(context.meta[name] for name in both))
                context.meta[_SETTINGS] = settings
                context.default_map = {name: value for name, key in keys.items() if (value := _default(settings, key))}

        file = click.option(
            "--config",
            _FILE,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=given,
            help="Settings file, instead of the advisor.toml or pyproject.toml nearest to the working directory.",
        )
        none = click.option(
            "--no-config",
            _NONE,
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=given,
            help="Read no settings file.",
        )
        return file(none(command))

    return decorate


def _read(file: Path | None, none: bool) -> Settings:
    from advisor_core.configuration.settings import Settings, find_settings, read_settings
    from advisor_core.contracts.problems import RuleFileError

    if file is not None and none:
        stop(EXIT_USAGE, "--config and --no-config exclude each other")
    if none:
        return Settings()
    try:
        return read_settings(file) if file is not None else find_settings(Path.cwd())
    except RuleFileError as error:
        stop(EXIT_USAGE, f"{error}\n(--no-config reads no settings file)")


def _default(settings: Settings, key: str) -> Any:
    """The value of a key as click takes defaults; nothing where the file does not give it."""
    place = settings.given(key)
    if place is None:
        return None
    value = getattr(settings.values, key)
    if key == "phase_marks":
        return [f"{text}={phase}" for text, phase in value.items()]
    if key in ("output", "baseline"):
        path = settings.path(key, value)
        if key == "baseline" and not path.is_file():
            stop(EXIT_USAGE, f"{place} (baseline): {path} does not exist")
        return str(path)
    return value


def current_settings() -> Settings:
    """The settings of the command that runs."""
    settings: Settings = click.get_current_context().meta[_SETTINGS]
    return settings


def place_of(parameter: str, key: str) -> str | None:
    """The place in a settings file that gives a parameter of the command; ``None`` where the command line does."""
    context = click.get_current_context()
    if context.get_parameter_source(parameter) is not ParameterSource.DEFAULT_MAP:
        return None
    place = current_settings().given(key)
    return None if place is None else f"{place} ({key})"


def followed() -> list[str]:
    """A line for each settings file that the command follows."""
    return [f"settings: {file}" for file in current_settings().files]


def cache_bytes(no_cache: bool) -> int:
    """What the cache of ranks may take, in bytes; 0 for none."""
    return 0 if no_cache else int(current_settings().values.cache_gib * (1 << 30))


def rule_options(
    rulesets: Sequence[Path],
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    overrides: Sequence[tuple[str, Scalar]] = (),
    **more: Any,
) -> RunOptions:
    """The options of a run about rules: of the command line, where that gives none of the settings, thresholds of both.
    ``more``: further options of the run."""
    from advisor_core.configuration.model import reasons
    from advisor_core.rules.origins import Origins
    from advisor_core.run.prepared import RunOptions

    settings = current_settings()
    values = settings.values
    selected = {} if select else reasons(values.select)
    ignored = {} if ignore else reasons(values.ignore)
    thresholds = {key: found for key, found in values.thresholds().items() if key not in dict(overrides)}
    origins = Origins(
        reasons=(*_reasons(settings, "select", selected), *_reasons(settings, "ignore", ignored)),
        settings=tuple((key, str(settings.places[path])) for key, (path, _) in thresholds.items()),
        **{
            key: f"{settings.given(key)} ({key})" for key, given in (("select", selected), ("ignore", ignored)) if given
        },
    )
    return RunOptions(
        rulesets=tuple(path.resolve() for path in rulesets or _rulesets(settings)),
        select=select or tuple(selected),
        ignore=ignore or tuple(ignored),
        overrides=(*((key, value) for key, (_, value) in thresholds.items()), *overrides),
        origins=origins,
        **more,
    )


def _reasons(settings: Settings, key: str, given: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Place and reason of each name that a key gives."""
    for name, why in given.items():
        place = settings.places.get((key, name)) or settings.given(key)
        yield name, (f"{place} ({key})", why)


def _rulesets(settings: Settings) -> list[Path]:
    paths = [settings.path("rulesets", name) for name in settings.values.rulesets]
    for path in paths:
        if not path.exists():
            stop(EXIT_USAGE, f"{settings.given('rulesets')} (rulesets): {path} does not exist")
    return paths
