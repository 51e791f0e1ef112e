"""Remove from a result who ran a job and where: home directories, names of users and of hosts, addresses.

Names are learned from the result itself: users from the home directories in call stacks and paths, hosts from the
names of profiles (``{hostname}_{pid}_{time}_ascend_pt``) and from URLs of files that could not be copied. All else, as
names of projects, models and kernels and other directories, stays: a report is no use without them; a user may name
words that go as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

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
_OF_URL: Final = re.compile(r"(?<=://)[^\s/:]+")
"""A host or bucket, in what is said of a file at a URL that cannot be copied."""

_ADDRESS: Final = re.compile(
    r"(?<![\w.])(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}(?![\w.])"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?=%)"
)
"""IPv4 addresses of private networks, and those before the name of an interface: four numbers may be a version."""

_FIXED: Final = frozenset(
    ("condition", "fingerprint", "explained_by", "explains", "id", "kind", "references", "rule", "severity", "sha256")
) | {"first_pass", "problems", "purpose", "schema_version", "state", "tool", "unit", "units"}
"""Fields that hold no text of the input, or link parts of the result."""

SHORTEST: Final = 3
"""Letters of the shortest word that is replaced inside of other words, one less where it is Chinese; our choice."""

_NAMED_KEYS: Final = frozenset(("chip", "profiler", "role_environments", "roles", "variables", "versions"))
"""Fields that are tables whose keys a job chooses: these hold names as well."""

_CHECKSUMS: Final = frozenset(
    ("explained_by", "explains", "fingerprint", "finding", "findings", "first_pass", "sha256")
)
"""Fields that hold checksums, in which letters come together by chance."""

_LEDGER: Final = ("compute/", "communication/", "idle/")


class RedactError(ValueError):
    """A word cannot be replaced; the message says why."""


def redact(result: RunResult, words: Sequence[str] = ()) -> RunResult:
    """The result with ``~`` for home directories, ``user1``, ``host1`` ... for names and ``x.x.x.x`` for addresses;
    the same name is the same everywhere. A name that is an ordinary word in the titles of rules (``data``) is replaced
    in paths only. Fields, numbers and links stay as they are.

    ``words``, such as names of projects, become ``word1``, ``word2`` ..., also inside of longer names and in either
    case. Raises `RedactError` for one that is too short, or that the report itself is made of.
    """
    for word in words:
        if len(word.strip()) < (SHORTEST if word.isascii() else SHORTEST - 1):
            raise RedactError(f"{word!r} is too short: it would be replaced inside of other words")
        if not any(letter.isalpha() for letter in word):
            raise RedactError(f"{word!r} has no letter: numbers stay as they are")
    body = result.model_dump(mode="json")
    if result.timeline is not None:  # which report.json leaves out
        body["timeline"] = result.timeline.model_dump(mode="json")
    texts = [*_texts(body)]
    ordinary = {word for rule in result.rules for word in re.findall(r"[A-Za-z]+", rule.title.en.lower())}
    places = [found[0] for text in _texts(body["diagnostics"]) for found in _OF_URL.finditer(text)]
    names = _Names(texts, ordinary, [word.strip() for word in words], places)
    try:
        redacted = RunResult.model_validate(_replaced(body, names))
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise RedactError(f"a word is one of those that the report is made of: {place}") from None
    for field, text in _all_texts(redacted.model_dump(mode="json"), ""):
        if left := [word for word in words if word.strip().lower() in text.lower()]:
            raise RedactError(f"{left[0]!r} is part of {text!r} ({field}), which the report cannot do without")
    return redacted


class _Names:
    """The names that occur in some texts, and what stands for them."""

    def __init__(
        self, texts: Sequence[str], ordinary: set[str], words: Sequence[str] = (), places: Sequence[str] = ()
    ) -> None:
        """``words``: further ones, which are replaced wherever they stand; ``places``: further names of hosts."""
        self._words = {word.lower(): f"word{number}" for number, word in enumerate(words, 1)}
        longest = sorted(self._words, key=lambda word: (-len(word), word))
        self._any_word = re.compile("|".join(map(_spelled, longest)), re.IGNORECASE) if longest else None
        plain = [re.sub(_ESCAPE, "", text) for text in texts]
        users = _found(text for texts in (texts, plain) for text in texts for text in _users(text))
        hosts = _found(found["host"] for text in plain for found in _WORKER.finditer(text))
        hosts += [place for place in _found(iter(places)) if place not in hosts]
        hosts += [short for host in hosts if (short := host.partition(".")[0]) not in (*hosts, "localhost", "")]
        stands = {name: f"user{number}" for number, name in enumerate(users, 1)}
        stands |= {name: f"host{number}" for number, name in enumerate(hosts, 1) if name not in stands}
        longest_first = sorted(stands, key=lambda name: (-len(name), name))
        self._stands = stands
        self._anywhere = _any_of([name for name in longest_first if name.lower() not in ordinary])
        self._in_paths = _any_of(longest_first)

    def without_words(self, text: str) -> str:
        if self._any_word is None:
            return text
        return self._any_word.sub(lambda found: self._words[re.sub(_ESCAPE, "", found[0]).lower()], text)

    def replaced(self, text: str) -> str:
        text = self.without_words(text)
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
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(_spelled, names))})(?![A-Za-z0-9])")


def _spelled(name: str) -> str:
    """The pattern of a name, with Markdown's escapes or without."""
    return "".join(c if c.isalnum() else rf"\\?{re.escape(c)}" for c in name)


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


def _all_texts(value: Any, field: str) -> Iterator[tuple[str, str]]:
    """All texts of a result, each with the field that it is in, and the keys of tables that a job chooses; no
    checksums."""
    if isinstance(value, str) and field not in _CHECKSUMS:
        yield field, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _all_texts(part, key)
        if field in _NAMED_KEYS:
            yield from ((field, key) for key in value)
    elif isinstance(value, list):
        for part in value:
            yield from _all_texts(part, field)


def _replaced(value: Any, names: _Names) -> Any:
    if isinstance(value, str):
        return value if value.startswith(_LEDGER) else names.replaced(value)
    if isinstance(value, Mapping):
        return {key: part if key in _FIXED else _below(key, part, names) for key, part in value.items()}
    return [_replaced(part, names) for part in value] if isinstance(value, list) else value


def _below(field: str, value: Any, names: _Names) -> Any:
    if field in _NAMED_KEYS and isinstance(value, Mapping):
        return {names.without_words(key): _replaced(part, names) for key, part in value.items()}
    return _replaced(value, names)
