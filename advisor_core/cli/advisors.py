"""``advisor advisors``: what is measured, and the columns that rules may use."""

from __future__ import annotations

import click

from advisor_core.cli.console import EXIT_USAGE, say, stop


@click.group()
def advisors() -> None:
    """List what is measured: the advisors whose rows rules judge."""


@advisors.command("list")
def list_advisors() -> None:
    """Name every advisor and say what it measures."""
    from advisor_core.plugins.host import load_host

    for name, advisor in sorted(load_host().advisors.items()):
        say(f"{name:34} {advisor.scope.value:4} {advisor.meaning}")


@advisors.command("show")
@click.argument("name")
def show_advisor(name: str) -> None:
    """Print the columns that rules may use of an advisor: type, unit and meaning, and its parameters."""
    from advisor_core.contracts.problems import nearest
    from advisor_core.plugins.host import load_host

    known = load_host().advisors
    if name not in known:
        stop(EXIT_USAGE, f"no advisor {name!r} {nearest(name, known)}".rstrip())
    advisor = known[name]
    about = {column.name for column in advisor.about}
    say(f"{name} ({advisor.scope.value}): {advisor.meaning}")
    say(f"  needs: {', '.join(key.name for key in advisor.needs) or 'nothing'}")
    say(f"  params: {', '.join(advisor.params) or 'none'}")
    for column in advisor.declared().values():
        mark = "*" if column.name in about else " "
        say(f"  {mark} {column.name:24} {column.dtype:5} {column.unit:6} {column.meaning}")
    if advisor.evidence:
        say(f"  evidence also shows: {', '.join(column.name for column in advisor.evidence)}")
    if about:
        say("  * tells one row from another")
