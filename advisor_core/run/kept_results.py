"""The whole result of a run, kept for the next one on the same files, with the same rules and the same options.

It tells what a run would tell: a run is a function of the files below it, of the options and of our code. Where only
the language or the format of the report is another, nothing is read, measured or judged; another threshold or rule
judges anew what was measured (`advisor_core.run.kept_ranks`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor_core.cache.fingerprint import Files, code_digest, files_of
from advisor_core.cache.folder import CacheFolder, rank_folder
from advisor_core.cache.names import tables_of
from advisor_core.cache.pickled import read_pickled, write_pickled
from advisor_core.contracts.problems import RuleFileError
from advisor_core.contracts.profile import InputError, RankInput, RoleError, StepError
from advisor_core.loaders.unreadable import tells_unreadable
from advisor_core.plugins.host import Host
from advisor_core.result.run import RunResult
from advisor_core.rules.files.ruleset import rule_files
from advisor_core.run.prepared import installed_host
from advisor_core.run.request import Request
from advisor_core.run.sources import sources


def kept_or_run(request: Request, run: Callable[[], RunResult]) -> RunResult:
    """The result that is kept for what is asked, or what ``run`` gives, which is then kept. Raises what it raises. For
    commands: the rule files of the user are read once in a process, and may change while it lasts."""
    began, began_ns = time.perf_counter(), time.time_ns()
    place = _place(request, installed_host())
    if place is None:
        return run()
    if (kept := read_pickled(place.folder, place.name, RunResult)) is not None:
        seconds = round(time.perf_counter() - began, 3)
        timings = {**dict.fromkeys(kept.timings, 0.0), "prepare_s": seconds, "total_s": seconds}
        return kept.model_copy(update={"timings": timings})
    result = run()
    if place.lasting(result, began_ns) and _rules_are(place.rules, request.options.rulesets):
        write_pickled(place.folder, place.name, result)
    return result


@dataclass(frozen=True)
class _Place:
    """The place of a result that is kept. ``name``: of all that it depends on; ``sources``: what was found below the
    paths; ``files``: those of each directory of them; ``rules``: digests of the rule files of the user."""

    folder: CacheFolder
    name: str
    sources: tuple[RankInput, ...]
    files: dict[Path, Files]
    rules: tuple[tuple[str, str], ...]

    def lasting(self, result: RunResult, began_ns: int) -> bool:
        """True where the next run would tell the same: no file is so new that a change of it might not show, nothing
        raised or could not be read, and all that was read of ranks is kept as well, which looks closer."""
        told = [diagnostic.about == "tool" or diagnostic.severity == "error" for diagnostic in result.diagnostics]
        if any(told) or any(outcome.state == "error" for outcome in result.rules):
            return False
        return (
            all(files.settled(began_ns) and files_of(place) == files for place, files in self.files.items())
            and all(map(self._holds_tables, self._in_depth(result)))
            and not tells_unreadable(result.model_dump_json())
        )

    def _in_depth(self, result: RunResult) -> Iterator[RankInput]:
        """The ranks of which more than sums was read."""
        several = len({source.role for source in self.sources}) > 1  # else a result does not tell the role
        coarse = {(told.role, told.rank) for told in result.inputs if told.coarse}
        return (source for source in self.sources if (source.role if several else None, source.rank) not in coarse)

    def _holds_tables(self, source: RankInput) -> bool:
        name = tables_of(source, self.files[source.directory])
        return name is not None and self.folder.holds(name)


def _place(request: Request, host: Host) -> _Place | None:
    """The place of the result; ``None`` where other plugins take part, where nothing is kept or taken from there, and
    where a run is to say what is wrong with what is asked."""
    folder = rank_folder(request.options.cache_bytes)
    if folder is None or request.options.timings or not host.is_ours():
        return None
    try:
        found = tuple(sources(host, request.paths, rank=request.rank, roles=request.roles))
        files = {place: files_of(place) for place in dict.fromkeys(source.directory for source in found)}
        rules = tuple(_rules(request.options.rulesets))
        code, here = code_digest(), Path.cwd()
    except (InputError, RoleError, StepError, RuleFileError, OSError):
        return None
    known = {place: state for place, state in files.items() if state is not None}
    if len(known) < len(files) or any(source.problem for source in found):
        return None
    request = dataclasses.replace(request, options=dataclasses.replace(request.options, cache_bytes=0))
    plugins = tuple(plugin.name for plugin in host.plugins)
    # Messages name files as the user called them, and rule files as they lie to the working directory.
    about = (request, here, plugins, code, found, tuple(known.items()), rules)
    name = hashlib.sha256(repr(about).encode("utf-8", "surrogateescape")).hexdigest()
    return _Place(folder, name, found, known, rules)


def _rules_are(rules: tuple[tuple[str, str], ...], rulesets: Sequence[Path]) -> bool:
    try:
        return tuple(_rules(rulesets)) == rules
    except (RuleFileError, OSError):
        return False


def _rules(rulesets: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The rule files of the user and what is in them: they are few and small, and are changed again and again."""
    for root in rulesets:
        for file in rule_files(root):
            yield os.fspath(file), hashlib.sha256(file.read_bytes()).hexdigest()
