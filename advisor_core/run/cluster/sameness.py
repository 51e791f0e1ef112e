"""All that the machines of a run must have in common, so that where a rank is read makes no difference: npu-advisor to
the byte, the libraries whose objects travel, the plugins, the user's rules, and the files of the ranks."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

from advisor_core.cache.fingerprint import CODE, LIBRARIES, names_and_sizes, source_files
from advisor_core.contracts.problems import RuleFileError
from advisor_core.plugins.host import OWN
from advisor_core.rules.files.ruleset import rule_files
from advisor_core.run.prepared import installed_host

Described = Mapping[str, str]
"""Names of what is installed, to versions; of rules, to digests."""

_DIGITS: Final = 12
"""Of a digest in a message: enough to tell two apart."""


@cache
def installed() -> Described:
    """The installation that this process runs. It is found out once: what is changed on disk later does not change a
    process."""
    found = {OWN: f"{metadata.version(OWN)}, code {_code()}", "Python": ".".join(map(str, sys.version_info[:2]))}
    found |= {name: metadata.version(name) for name in ("distributed", *LIBRARIES)}
    for plugin in installed_host().plugins:
        if plugin.distribution != OWN:
            state = f"{plugin.version}, {plugin.problem}" if plugin.problem else plugin.version
            found[f"plugin {plugin.name} of {plugin.distribution}"] = state
    return found


def _code() -> str:
    """A digest of the content of our code and data."""
    root = Path(__file__).parents[3]
    digest = hashlib.sha256()
    for package in CODE:
        for name, file in source_files(root / package, f"{package}/"):
            digest.update(f"{name}\0".encode())
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:_DIGITS]


def rules(rulesets: Sequence[Path]) -> Described:
    """The user's rule files as they are now."""
    return {str(place): _rules(place) for place in rulesets}


def _rules(place: Path) -> str:
    digest = hashlib.sha256()
    try:
        for file in rule_files(place, cases=False):
            digest.update(f"{file.relative_to(place).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    except (OSError, RuleFileError):
        return ""
    return digest.hexdigest()[:_DIGITS]


def files(directory: Path) -> str | None:
    """A sign of the files of a rank, by their names and sizes: '' where none can be seen, ``None`` where they are too
    many to look at each."""
    try:
        return names_and_sizes(directory)
    except OSError:
        return ""


def differences(own: Described, theirs: Described) -> list[str]:
    """The differences of another machine: of each what is there, and what is here."""
    names = dict.fromkeys((*own, *theirs))
    told = {name: (own.get(name) or "none", theirs.get(name) or "none") for name in names}
    return [f"{name}: {there} (here: {here})" for name, (here, there) in told.items() if here != there]
