"""Check a call in a text against the signature in the registry."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import Any


class SignatureError(ValueError):
    """A signature of the registry is not a parameter list as Python writes it."""


@cache
def signature(text: str) -> inspect.Signature:
    """``(x, *, dim=-1)`` as a signature; defaults are kept as text. Raises `SignatureError`."""
    try:
        function = ast.parse(f"def f{text}: ...").body[0]
    except SyntaxError as error:
        raise SignatureError(f"{text!r}: {error.msg}") from None
    assert isinstance(function, ast.FunctionDef)
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    kinds = inspect.Parameter
    parameters = [
        kinds(
            argument.arg,
            kinds.POSITIONAL_ONLY if number < len(arguments.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if number < required else ast.unparse(arguments.defaults[number - required]),
        )
        for number, argument in enumerate(positional)
    ]
    if arguments.vararg:
        parameters.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        given = kinds.empty if default is None else ast.unparse(default)
        parameters.append(kinds(argument.arg, kinds.KEYWORD_ONLY, default=given))
    if arguments.kwarg:
        parameters.append(kinds(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def misfit(text: str, call: ast.Call) -> str:
    """The mistake in a call by the signature ``text``; '' if it fits. ``...`` stands for arguments left out."""
    if any(isinstance(argument, ast.Constant) and argument.value is ... for argument in call.args):
        known = signature(text).parameters
        unknown = [word.arg for word in call.keywords if word.arg and word.arg not in known and not _open(text)]
        return f"has no parameter {unknown[0]!r}" if unknown else ""
    given: dict[str, Any] = {word.arg: word.value for word in call.keywords if word.arg}
    try:
        signature(text).bind(*call.args, **given)
    except TypeError as error:
        return str(error)
    return ""


def _open(text: str) -> bool:
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature(text).parameters.values())
