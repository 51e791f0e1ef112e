"""The answers of a server: those of the commands of the same names, as data.

Nothing is written. Results of the last runs are kept while their files stay the same, so that questions about a profile
do not analyse it again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advisor_core.collecting import TOOLS
from advisor_core.collecting.plan import ToolError, plan, tool_for
from advisor_core.collecting.render import render
from advisor_core.compare.compare import CompareError, compare_all
from advisor_core.compare.names import short_names
from advisor_core.contracts.isolation import quiet
from advisor_core.contracts.problems import RuleFileError
from advisor_core.contracts.profile import InputError, RoleError, StepError
from advisor_core.contracts.registry import writes_comparisons
from advisor_core.gates.baseline import BaselineError, is_baseline, read_baseline
from advisor_core.result.result_file import ResultFileError, is_result, read_result
from advisor_core.result.run import RunResult
from advisor_core.run.deep_ranks import BY_SIZE, DeepRanks
from advisor_core.run.explain import explain
from advisor_core.run.nothing_judged import nothing_judged
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from advisor_core.run.sources import sources
from advisor_core.run.what_if import WhatIfError, what_if
from advisor_core.serving.root import OutsideError, Root, Stamp

Json = dict[str, Any]
Progress = Callable[[str], None]

OVERVIEW = (
    *("schema_version", "tool", "environment", "profile", "mean_steps", "problems", "unexplained", "coverage"),
    *("plan", "diagnostics"),
)
"""The parts of report.json that tell where the time went and what to do, without ledgers, evidence and drawings: about
15 KB of the 600 KB of the embedded sample."""

KEPT = 4
"""Results that are kept: enough for a question about a before and an after; our choice."""


class AnswerError(Exception):
    """A question that cannot be answered as it was put; the message is for whoever asked."""


@dataclass(frozen=True)
class _Question:
    """What a run depends on besides the files."""

    path: Path
    rank: int | None = None
    roles: tuple[str, ...] = ()
    step: int | None = None


class Answers:
    """Answers from what is below a folder. ``options`` and ``deep``: of every run; ``jobs``: processes, by default as
    many as pay. Not for several threads at once. Every method raises `AnswerError`."""

    def __init__(self, root: Root, options: RunOptions, deep: DeepRanks = BY_SIZE, jobs: int | None = None) -> None:
        self._root = root
        self._options = options
        self._deep = deep
        self._jobs = jobs
        self._kept: OrderedDict[_Question, tuple[Stamp, RunResult]] = OrderedDict()

    def run(
        self,
        path: str,
        progress: Progress,
        *,
        rank: int | None = None,
        roles: Sequence[str] = (),
        step: int | None = None,
        parts: Sequence[str] = (),
    ) -> Json:
        """``report``: these parts of report.json, by default `OVERVIEW`; ``other_parts``: the names of the others."""
        with _told():
            asked = _Question(self._root.path(path), rank, tuple(roles), step)
            report = _as_written(self._result(asked, progress))
        chosen = tuple(parts) or OVERVIEW
        if unknown := [part for part in chosen if part not in report]:
            raise AnswerError(f"report.json has no part {unknown[0]!r}; it has {', '.join(report)}")
        return {
            "report": {part: report[part] for part in chosen},
            "other_parts": [part for part in report if part not in chosen],
        }

    def findings(self, path: str, progress: Progress, *, what: str = "", first: int = 5) -> Json:
        """``findings`` and ``problems`` of report.json in the order of the report, of ``what`` (the number of a
        problem, a fingerprint, a rule id or name) or the first ones; ``total``: how many there are of them."""
        with _told():
            result = self._result(_Question(self._root.path(path)), progress)
        report = _as_written(result)
        own = {finding["fingerprint"]: finding for finding in report["findings"]}
        asked = what.strip()
        problems = [
            problem
            for problem in report["problems"]
            if not asked or asked.lower() == problem["number"].lower() or asked in _names(own[problem["findings"][0]])
        ]
        if asked and not problems:
            numbers = ", ".join(problem["number"] for problem in report["problems"])
            raise AnswerError(f"{asked!r} is no problem, fingerprint or rule with a finding; problems: {numbers}")
        shown = problems[: max(first, 1)]
        return {
            "total": len(problems),
            "problems": shown,
            "findings": [own[fingerprint] for problem in shown for fingerprint in problem["findings"]],
        }

    def explain(self, path: str, what: str, lang: str, progress: Progress) -> str:
        """The text of ``advisor explain``."""
        with _told():
            result = self._result(_Question(self._root.path(path)), progress)
            try:
                return explain(result, what, lang)
            except LookupError as error:
                raise AnswerError(str(error.args[0])) from None

    def what_if(
        self,
        path: str,
        progress: Progress,
        *,
        without: Sequence[str] = (),
        scale: Mapping[str, float] | None = None,
        rank_as: Mapping[int, int] | None = None,
    ) -> Json:
        """What ``advisor what-if --format json`` prints. Of a profile: the replay is no part of report.json."""
        if wrong := [factor for factor in (scale or {}).values() if not 0 <= factor < float("inf")]:
            raise AnswerError(f"a factor is 0 or more, not {wrong[0]}")
        with _told():
            directory = self._root.path(path)
            if is_result(directory):
                raise AnswerError(f"{path} is a report.json, which holds no replay: give the profile")
            self._confined(_Question(directory))
            _, answer = what_if(
                [directory],
                self._options,
                without=without,
                scale=scale,
                rank_as=rank_as,
                deep=self._deep,
                jobs=self._jobs,
                progress=progress,
            )
        told: Json = answer.model_dump(mode="json")
        return told

    def compare(self, before: str, after: Sequence[str], progress: Progress) -> Json:
        """``compare.json``."""
        if not after:
            raise AnswerError("name at least one run to compare with the first")
        with _told():
            paths = [self._root.path(name) for name in (before, *after)]
            accepted = read_baseline(paths[0]) if is_baseline(paths[0]) else None
            own = paths if accepted is None else paths[1:]
            results = [self._result(_Question(path), progress) for path in own]
            compared = compare_all(short_names(paths), results, accepted)
        writer = installed_host().renderers["json"]
        assert writes_comparisons(writer)
        told: Json = json.loads(writer.render_comparison(compared, "en"))
        return told

    def collect(self, path: str, tool: str, lang: str, progress: Progress) -> str:
        """The text of ``advisor collect``; ``path`` '' for the recommended configuration."""
        if tool and tool not in TOOLS:
            raise AnswerError(f"{tool!r} is no tool that takes profiles; there are {', '.join(TOOLS)}")
        with _told():
            result = self._result(_Question(self._root.path(path)), progress) if path else None
            options = installed_host().capture_options
            return render(plan(tool_for(tool or None, options.values(), result), options, result), lang)

    def _result(self, asked: _Question, progress: Progress) -> RunResult:
        if is_result(asked.path):
            if asked != _Question(asked.path):
                raise AnswerError("rank, roles and step choose what is read of a profile; this is a report.json")
            return read_result(asked.path)
        stamp = self._confined(asked)
        kept = self._kept.get(asked)
        if kept is None or kept[0] != stamp:
            options = replace(self._options, step=asked.step)
            result = run(
                [asked.path],
                options,
                rank=asked.rank,
                roles=asked.roles,
                deep=self._deep,
                jobs=self._jobs,
                progress=progress,
            )
            kept = stamp, result
            self._kept[asked] = kept
        self._kept.move_to_end(asked)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if unusable := nothing_judged(kept[1]):
            raise AnswerError(unusable)
        return kept[1]

    def _confined(self, asked: _Question) -> Stamp:
        """The files of a profile. Loaders also read what lies above a part of a profile that is named: it is looked at
        where they look."""
        below = self._root.stamp([asked.path])
        found = sources(installed_host(), [asked.path], rank=asked.rank, roles=asked.roles)
        further = {source.directory for source in found if not source.directory.is_relative_to(asked.path)}
        return below | self._root.stamp(further)


@contextmanager
def _told() -> Iterator[None]:
    """What a user can cause becomes an `AnswerError`."""
    try:
        with quiet():
            yield
    except (OutsideError, InputError, RoleError, StepError, RuleFileError, ResultFileError) as error:
        raise AnswerError(str(error)) from None
    except (BaselineError, CompareError, WhatIfError, ToolError) as error:
        raise AnswerError(str(error)) from None
    except OSError as error:
        raise AnswerError(f"{error.filename or 'a file'}: cannot be read ({error.strerror or error})") from None


def _as_written(result: RunResult) -> Json:
    """report.json, as its renderer writes it."""
    written: Json = json.loads(installed_host().renderers["json"].render(result, "en"))
    return written


def _names(finding: Json) -> tuple[str, ...]:
    return finding["fingerprint"], finding["rule"], finding["name"]
