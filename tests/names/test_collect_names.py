"""The configurations that ``advisor collect`` prints name only what is registered, and their calls fit."""

from __future__ import annotations

import ast
import re

import pytest

from advisor_core.collecting import TOOLS
from advisor_core.collecting import plan as planning
from advisor_core.collecting.render import render
from advisor_core.collecting.tool import tools
from advisor_core.names.mentions import dotted
from advisor_core.names.signatures import misfit
from advisor_core.plugins.host import load_host
from advisor_core.result.run import RunResult

OPTIONS = load_host().capture_options
_HEREDOC = re.compile(r"<<'PYTHON'\n(.*?)\nPYTHON$", re.DOTALL | re.MULTILINE)


def plan(tool: str, given: RunResult | None = None) -> planning.Plan:
    return planning.plan(tool, OPTIONS, given)


def python_of(text: str, tool: str) -> str:
    return text if tools()[tool].language == "py" else "\n".join(_HEREDOC.findall(text))


def shell_of(text: str, tool: str) -> str:
    if tools()[tool].language == "py":
        return ""
    lines = _HEREDOC.sub("", text).splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


@pytest.mark.parametrize("tool", TOOLS)
def test_calls_of_the_profiler_fit_their_signatures(tool: str) -> None:
    book = load_host().name_book()
    seen = 0
    for node in ast.walk(ast.parse(python_of(render(plan(tool), "en"), tool))):
        name = dotted(node) if isinstance(node, ast.Attribute) else ""
        if name.startswith(("torch_npu.profiler.", "torch.profiler.", "mindspore.profiler.")):
            assert book.get(name) is not None, name
        if isinstance(node, ast.Call) and dotted(node.func).startswith(("torch_npu.", "torch.profiler.", "mindspore.")):
            entry = book.get(dotted(node.func))
            assert entry is not None and entry.signature is not None, ast.unparse(node)
            assert misfit(entry.signature, node) == "", ast.unparse(node)
            seen += 1
    assert seen >= {"torch_npu": 4, "vllm": 4, "torch": 3, "mindspore": 4}.get(tool, 0)


@pytest.mark.parametrize("tool", TOOLS)
def test_flags_keys_and_variables_are_registered(tool: str) -> None:
    book = load_host().name_book()
    shell = shell_of(render(plan(tool), "en"), tool)
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", shell))
    keys = set(re.findall(r"^\s+([a-z_]+(?:\.[a-z_]+)+)=", shell, re.MULTILINE))
    variables = set(re.findall(r"^export ([A-Z_]+)=", shell, re.MULTILINE))
    python = {"--nproc_per_node", "--master_port"}  # of torchrun
    unknown = {name for name in (flags | keys | variables) - python if book.get(name) is None}
    assert not unknown
    assert {"verl": keys, "vllm": flags, "msprof": flags, "mindie": variables}.get(tool, True)
