"""Calling the engine from a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from advisor_core.cli.console import EXIT_INPUT, EXIT_USAGE, stop


@contextmanager
def engine_call() -> Iterator[None]:
    """Run the engine without the warnings of libraries; where it refuses the input or an option the command ends with a
    message and its exit code."""
    from advisor_core.contracts.isolation import quiet
    from advisor_core.contracts.problems import RuleFileError
    from advisor_core.contracts.profile import InputError, RoleError, StepError
    from advisor_core.remote.shown import with_urls

    try:
        with quiet():
            yield
    except InputError as error:
        stop(EXIT_INPUT, with_urls(str(error)))
    except (RuleFileError, StepError, RoleError) as error:
        stop(EXIT_USAGE, with_urls(str(error)))
