"""``--fail-on`` and ``--baseline`` of ``advisor run``: read before the run, judged after it."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from advisor_core.cli.console import EXIT_FINDINGS, EXIT_INPUT, EXIT_USAGE, stop, tell

if TYPE_CHECKING:
    from advisor_core.gates.baseline import Baseline
    from advisor_core.gates.condition import Gate
    from advisor_core.result.run import RunResult


class Gates:
    """The conditions of a run. What is wrong with one of them, or with the baseline, stops the command at once."""

    def __init__(
        self,
        conditions: tuple[str, ...],
        baseline_file: Path | None,
        given_by: str = "--fail-on",
        baseline_by: str = "--baseline",
    ) -> None:
        """``given_by``, ``baseline_by``: the option, or the place in a settings file that stands for it."""
        self._given_by = given_by
        self._gates: tuple[tuple[str, Gate], ...] = ()
        self._baseline: Baseline | None = None
        if not conditions:
            if baseline_file is not None:
                stop(EXIT_USAGE, "--baseline is for conditions of --fail-on, and there is none")
            return
        from advisor_core.gates.baseline import BaselineError, read_baseline
        from advisor_core.gates.condition import GateError, parse_gate
        from advisor_core.run.prepared import installed_host

        try:
            self._baseline = read_baseline(baseline_file) if baseline_file else None
            paths = installed_host().ledger_paths
            self._gates = tuple((text, parse_gate(text, paths, baseline_file is not None)) for text in conditions)
        except BaselineError as error:
            stop(EXIT_USAGE, f"{baseline_by}: {error}")
        except GateError as error:
            stop(EXIT_USAGE, f"{given_by}: {error}")

    def judge(self, result: RunResult) -> None:
        """Name the conditions that hold on stderr, and exit with 1 if there are any; with 3 where none holds and one
        cannot be decided."""
        if not self._gates:
            return
        from advisor_core.gates.condition import UndecidableError

        holding, undecided = [], []
        for text, gate in self._gates:
            try:
                if met := gate.met(result, self._baseline, date.today()):
                    holding.append(f"{self._given_by} {text!r} holds: {met}")
            except UndecidableError as error:
                undecided.append(f"{self._given_by} {text!r} cannot be decided: {error}")
        for line in (*holding, *undecided):
            tell(line)
        if holding or undecided:
            sys.exit(EXIT_FINDINGS if holding else EXIT_INPUT)
