"""``advisor explain``: how what a report names came about."""

from __future__ import annotations

from pathlib import Path

import click

from advisor_core.cli.console import EXIT_USAGE, printable, say, stop
from advisor_core.cli.letters import warn_of_lost_letters
from advisor_core.cli.options import language_option
from advisor_core.cli.result_file import read_result
from advisor_core.cli.settings import settings_options


@click.command()
@click.argument("result", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RESULT.json")
@click.argument("what", nargs=-1, required=True, metavar="WHAT")
@language_option("the answer")
@settings_options(lang="lang")
def explain(result: Path, what: tuple[str, ...], lang: str) -> None:
    """Show how a problem, a rule's state, a rank, a ledger entry, an operator or a collective came about.

    RESULT.json is the report.json of a run. WHAT is the number of a problem (F2, F2a), a fingerprint, a rule id or
    name, a rank (rank 3), a ledger path such as idle/host/compile, an operator type (MatMulV3) or a collective
    (allReduce).
    """
    from advisor_core.run.explain import explain as explain_result

    warn_of_lost_letters(lang)
    loaded = read_result(result)
    try:
        say(printable(explain_result(loaded, " ".join(what), lang)))
    except LookupError as error:
        stop(EXIT_USAGE, str(error.args[0]))
