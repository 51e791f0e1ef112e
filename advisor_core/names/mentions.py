"""Find the names that a text mentions: text in code font, and words that are spelt like environment variables.

Code font in a text is one of: a name (``npu-smi info -t topo``, ``kernel_details.csv``), a setting (``NAME=VALUE``),
flags of a command line, or Python. Python is taken apart: the functions that it calls, and the attributes that it sets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*")
_ASSIGNMENT = re.compile(r"(?P<name>\+?[A-Za-z_][\w.-]*)=(?P<value>\S+)\Z")
_KEYWORD = re.compile(r"[A-Za-z_]\w*=[^=\s]")
_DOTTED = re.compile(r"\.?[A-Za-z_][\w.]*(\(\))?\Z")


@dataclass(frozen=True)
class Mention:
    """``offset``: where in the text. ``value``: what a setting is set to, or ``None``. ``call``: the arguments that
    Python code gives a function."""

    name: str
    offset: int
    value: str | None = None
    call: ast.Call | None = None


def mentions(text: str) -> Iterator[Mention]:
    """The names in a text, in order of place."""
    blank = _PLACEHOLDER.sub(lambda found: " " * len(found.group()), text)
    found = list(_in_spans(blank))
    outside = _SPAN.sub(lambda span: " " * len(span.group()), blank)
    found += [Mention(word.group(), word.start()) for word in _VARIABLE.finditer(outside)]
    yield from sorted(found, key=lambda mention: mention.offset)


def spans(text: str) -> Iterator[tuple[str, int]]:
    """The text in code font, with its place."""
    for span in _SPAN.finditer(text):
        yield span[2].strip(), span.start(2)


def _in_spans(text: str) -> Iterator[Mention]:
    for code, offset in spans(text):
        yield from (Mention(mention.name, offset, mention.value, mention.call) for mention in in_code(code))


def in_code(code: str) -> list[Mention]:
    """The names in a piece of code."""
    flags = [Mention(flag.group(), 0) for flag in _FLAG.finditer(code)]
    if flags:
        first = code.split()[0]
        return flags if first.startswith("-") else [Mention(first, 0), *flags]
    if _DOTTED.fullmatch(code):
        return [Mention(code.removesuffix("()"), 0, None, _call(code))]
    settings = [found for part in code.split() if (found := _ASSIGNMENT.fullmatch(part))]
    if len(settings) == len(code.split()) and not re.search(r"[(\[{]|,(\s|$)", code):
        return [Mention(setting["name"], 0, setting["value"].strip("\"'")) for setting in settings]
    tree = parsed(code)
    return [Mention(code, 0)] if tree is None else list(_in_python(tree))


def parsed(code: str) -> ast.Module | None:
    """Python code as a tree; keyword arguments, written without blanks, count as the arguments of a call. ``None`` for
    what is not Python."""
    if code.startswith("."):  # a method, whatever it is called on
        code = f"_{code}"
    arguments = f"_({code})"
    for source in (arguments, code) if _KEYWORD.match(code) else (code, arguments):
        try:
            return ast.parse(source)
        except SyntaxError:
            continue
    return None


def _call(code: str) -> ast.Call | None:
    tree = parsed(code) if code.endswith("()") else None
    statement = tree.body[0] if tree is not None and tree.body else None
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value if isinstance(value, ast.Call) else None


def _in_python(tree: ast.Module) -> Iterator[Mention]:
    called: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called.add(id(node.func))
            name = dotted(node.func)
            if name and name != "_":
                yield Mention(name, 0, None, node)
            elif name == "_":
                yield from (Mention(word.arg, 0, ast.unparse(word.value)) for word in node.keywords if word.arg)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in called and id(node) not in inner:
            name = dotted(node)
            if name:
                yield Mention(name, 0)


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of a chain of attributes; '' for anything else. What a method is called on does not matter."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else f".{node.attr}"
    return ""
