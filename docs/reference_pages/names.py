"""Pages of the reference about the registry of names: a page per software, and the names that a rule mentions."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.names.book import NameBook
from advisor_core.names.mentions import mentions
from advisor_core.names.model import Name, NameKind, Software, Source
from advisor_core.rules.compiled import CompiledRule
from advisor_core.rules.files.check import texts
from reference_pages.markdown import Pages, code, join, listing, table, to

_KINDS: dict[NameKind, str] = {
    "variable": "Environment variables",
    "api": "APIs",
    "option": "Options",
    "flag": "Flags",
    "command": "Commands",
    "feature": "Features",
    "value": "Values and words",
    "file": "Files",
}


def name_pages(book: NameBook) -> Pages:
    """The index of the registry and a page per software."""
    index = "names/index.md"
    ordered = sorted(book.software, key=lambda software: software.title.lower())
    pages = {
        index: join(
            "# Names",
            "Every API, variable, option, flag and command that a text of a rule names stands in a registry, with its "
            "spelling, its signature or values, and the source that was read. `advisor rules check` mentions names in "
            "rule files that are like one of these and spelt otherwise.",
            table(
                ("Software", "Names", "Read from", "State of"),
                (
                    (
                        to(_page(software), software.title, index),
                        len(software.names),
                        _source(software.source),
                        software.source.date.isoformat(),
                    )
                    for software in ordered
                ),
            ),
        )
    }
    for software in ordered:
        pages[_page(software)] = join(f"# {software.title}", *_sections(software))
    return pages


def names_of_rule(compiled: CompiledRule, page: str) -> str:
    """Links to the names that the texts of a rule mention, and that its advice uses."""
    book = compiled.names
    found: dict[str, Name] = {}
    for _, text in texts(compiled.rule, ()):
        for mention in mentions(text.en):
            entry = book.get(mention.name)
            if entry is not None and entry.kind not in ("value", "file"):
                found[entry.name] = entry
    for advice in compiled.rule.advice:
        for name in (*advice.set, *advice.uses):
            entry = book.get(name.partition("=")[0])
            if entry is not None:
                found[entry.name] = entry
    return ", ".join(
        to(_page(book.owners[name]), _KINDS[entry.kind], page, code(name)) for name, entry in sorted(found.items())
    )


def _source(source: Source) -> str:
    return f"[{source.title}]({source.url})" if source.url else source.title


def _page(software: Software) -> str:
    return f"names/{software.software}.md"


def _sections(software: Software) -> Iterator[str]:
    source = software.source
    yield f"Read from {_source(source)}, state of {source.date.isoformat()}, unless a name says otherwise."
    for kind, heading in _KINDS.items():
        names = sorted((name for name in software.names if name.kind == kind), key=lambda name: name.name.lower())
        if names:
            yield f"## {heading}"
            yield listing(_entry(name) for name in names)


def _entry(name: Name) -> str:
    signature = name.signature or ""
    meaning = name.meaning.rstrip(".")
    parts = [f"**{code(name.name + signature)}**: {meaning}."]
    if name.aliases:
        parts.append(f"Also written {', '.join(map(code, name.aliases))}.")
    if name.returns:
        parts.append(f"Returns {code(name.returns)}.")
    if isinstance(name.values, list):
        parts.append(f"Values: {', '.join(map(code, name.values))}.")
    elif name.values:
        parts.append(f"Values: {name.values}.")
    parts += [f"Default: {code(name.default)}."] if name.default is not None else []
    parts += [f"Since {name.since}."] if name.since else []
    parts += [f"Until {name.until}."] if name.until else []
    parts += [f"Chips: {', '.join(name.chips)}."] if name.chips else []
    for value, excluded in name.excludes.items():
        given = "" if value == "*" else f" with {code(value)}"
        parts.append(f"Not together{given} with {', '.join(map(code, excluded))}.")
    if name.source is not None:
        parts.append(f"Source: {_source(name.source)}, {name.source.date.isoformat()}.")
    parts += [f"Page: {name.page}."] if name.page else []
    parts += ["Not verified against a source."] if name.unverified else []
    return " ".join(parts)
