"""Remove from a result who ran a job and where: home directories, names of users and of hosts, addresses.

Names are learned from the result itself: users from the home directories in call stacks and paths, hosts from the names
of profiles (``{hostname}_{pid}_{time}_ascend_pt``). Everything else, such as names of projects, models and kernels and
other directories, stays: a report is no use without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from advisor_core.result.run import RunResult

_ESCAPE: Final = r"\\(?=[^\w\s]|_)"
"""The escape that Markdown puts before a character of its own syntax."""

_COMPONENT: Final = rf"(?:{_ESCAPE}[^\w\s]|{_ESCAPE}_|[^/\\\s:;,\"'`()<>])+"
_HOMES: Final = (
    re.compile(rf"(?<![\w.~-])(?:/[\w.-]+)*?/(?:home|Users|users)/(?P<user>{_COMPONENT})"),
    re.compile(r"\b[A-Za-z]:[\\/]+(?:Users|Documents and Settings)[\\/]+(?P<user>[^\\/:*?\"<>|\n]+)(?=[\\/]|$)"),
    re.compile(r"(?<![\w./~-])/root(?![\w.-])"),
)
"""Home directories of Linux, also on a mounted disk, of macOS and of Windows, and that of root, who has no name."""

_WORKER: Final = re.compile(r"(?P<host>[^\s/\\\"'`:]+?)_(?:\d{1,10}_)?\d{10,20}_ascend_(?:pt|ms)")
_ADDRESS: Final = re.compile(
    r"(?<![\w.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}(?![\w.])"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?=%)"
)
"""IPv4 addresses of private networks, and those before the name of an interface: four numbers may be a version."""

_FIXED: Final = frozenset(
    ("condition", "fingerprint", "explained_by", "explains", "id", "kind", "references", "rule", "severity", "sha256")
) | {"problems", "purpose", "schema_version", "state", "tool", "unit", "units"}
"""Fields that hold no text of the input, or link parts of the result."""

_LEDGER: Final = ("compute/", "communication/", "idle/")


def redact(result: RunResult) -> RunResult:
    """The result with ``~`` for home directories, ``user1``, ``host1`` ... for names and ``x.x.x.x`` for addresses;
    the same name is the same everywhere. A name that is an ordinary word in the titles of rules (``data``) is replaced
    in paths only. Fields, numbers and links stay as they are."""
    body = result.model_dump(mode="json")
    if result.timeline is not None:  # which report.json leaves out
        body["timeline"] = result.timeline.model_dump(mode="json")
    texts = [*_texts(body)]
    ordinary = {word for rule in result.rules for word in re.findall(r"[A-Za-z]+", rule.title.en.lower())}
    names = _Names(texts, ordinary)
    return RunResult.model_validate(_replaced(body, names))


class _Names:
    """The names that occur in some texts, and what stands for them."""

    def __init__(self, texts: Sequence[str], ordinary: set[str]) -> None:
        plain = [re.sub(_ESCAPE, "", text) for text in texts]
        users = _found(text for texts in (texts, plain) for text in texts for text in _users(text))
        hosts = _found(found["host"] for text in plain for found in _WORKER.finditer(text))
        hosts += [short for host in hosts if (short := host.partition(".")[0]) not in (*hosts, "localhost", "")]
        stands = {name: f"user{number}" for number, name in enumerate(users, 1)}
        stands |= {name: f"host{number}" for number, name in enumerate(hosts, 1) if name not in stands}
        longest_first = sorted(stands, key=lambda name: (-len(name), name))
        self._stands = stands
        self._anywhere = _any_of([name for name in longest_first if name.lower() not in ordinary])
        self._in_paths = _any_of(longest_first)

    def replaced(self, text: str) -> str:
        for home in _HOMES:
            text = home.sub("~", text)
        text = _ADDRESS.sub("x.x.x.x", text)
        if self._anywhere is not None:
            text = self._anywhere.sub(self._stand_in, text)
        if self._in_paths is not None:
            in_paths = self._in_paths
            text = re.sub(r"\S*(?:[/\\]|_ascend_)\S*", lambda found: in_paths.sub(self._stand_in, found[0]), text)
        return text

    def _stand_in(self, found: re.Match[str]) -> str:
        return self._stands[re.sub(_ESCAPE, "", found[0])]


def _users(text: str) -> Iterator[str]:
    for home in _HOMES[:2]:
        for found in home.finditer(text):
            yield re.sub(_ESCAPE, "", found["user"])


def _found(names: Iterator[str]) -> list[str]:
    """Each name once, in order of appearance, without what holds no letter."""
    return [name for name in dict.fromkeys(names) if any(character.isalpha() for character in name)]


def _any_of(names: Sequence[str]) -> re.Pattern[str] | None:
    """Any of the names where it is no part of a longer word, also with Markdown's escapes in it."""
    if not names:
        return None
    spelled = ["".join(c if c.isalnum() else rf"\\?{re.escape(c)}" for c in name) for name in names]
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(spelled)})(?![A-Za-z0-9])")


def _texts(value: Any) -> Iterator[str]:
    """All texts that may hold a name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in _FIXED:
                yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _replaced(value: Any, names: _Names) -> Any:
    if isinstance(value, str):
        return value if value.startswith(_LEDGER) else names.replaced(value)
    if isinstance(value, Mapping):
        return {key: part if key in _FIXED else _replaced(part, names) for key, part in value.items()}
    return [_replaced(part, names) for part in value] if isinstance(value, list) else value
