"""Check the names that a text mentions: not in the registry, a value that a setting does not take, or a
call that does not fit the signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor_core.contracts.problems import nearest
from advisor_core.names.book import NameBook
from advisor_core.names.mentions import mentions
from advisor_core.names.signatures import misfit, signature

_LITERALS = frozenset({"True", "False", "None"})


def name_problems(
    text: str, book: NameBook, parameters: frozenset[str] = frozenset()
) -> Iterator[tuple[int, str, str]]:
    """Offset, message and hint of every mistake. ``parameters``: of functions that the text may speak of."""
    for mention in mentions(text):
        if mention.name in _LITERALS or mention.name in parameters:
            continue
        for message, hint in setting_problems(mention.name, mention.value, book):
            yield mention.offset, message, hint
        entry = book.get(mention.name)
        if entry is not None and mention.call is not None and entry.signature is not None:
            problem = misfit(entry.signature, mention.call)
            if problem:
                yield mention.offset, f"the call of {mention.name} does not fit {entry.signature}: {problem}", ""


def parameters_of(texts: Iterable[str], book: NameBook) -> frozenset[str]:
    """The parameters of the functions that the texts name: they may speak of these by themselves."""
    entries = [book.get(mention.name) for text in texts for mention in mentions(text)]
    signatures = [entry.signature for entry in entries if entry is not None and entry.signature is not None]
    return frozenset(name for written in signatures for name in signature(written).parameters)


def setting_problems(name: str, value: str | None, book: NameBook) -> Iterator[tuple[str, str]]:
    """Message and hint of what is wrong with a setting, an API or a feature that an advice lists."""
    entry = book.get(name)
    if entry is None:
        yield f"{name!r} is not in the registry of names", nearest(name, book.names)
    elif value is not None and isinstance(entry.values, list) and not _takes(entry.values, value):
        yield f"{name} does not take {value!r}", f"it takes {', '.join(entry.values)}"


def _takes(values: list[str], value: str) -> bool:
    return value.strip("\"'").lower() in {known.lower() for known in values}
