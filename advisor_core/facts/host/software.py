"""The software whose code a recording shows: engines and libraries, by frames of Python and names of operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from advisor_core.contracts.columns import array_of
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.tables import HOST_EVENTS, OPERATORS

PACKAGES: Final[Mapping[str, str]] = {
    "vllm": "vllm",
    "vllm_ascend": "vllm-ascend",
    "sglang": "sglang",
    "megatron": "megatron",
    "mindspeed": "mindspeed",
    "mindspeed_llm": "mindspeed-llm",
    "verl": "verl",
    "transformers": "transformers",
}
"""Packages of Python whose frames tell that the software, as the registry of names calls it, runs. The package of a
file is a folder of its path (``/opt/lib/vllm/v1/worker.py(3): run``, ``megatron/training.py(780): train``)."""

NAMESPACES: Final[Mapping[str, str]] = {"vllm": "vllm", "sgl_kernel": "sglang"}
"""Namespaces in which software registers operators of its own (``vllm::unified_attention``). They are recorded without
call stacks too.

Source: https://github.com/vllm-project/vllm (torch.ops.vllm), https://github.com/sgl-project/sglang (sgl-kernel)."""


@fact("software", wants=(HOST_EVENTS, OPERATORS), shared=True)
def software(facts: Facts) -> tuple[str, ...]:
    """Names of software whose code the recording shows, in the order of `PACKAGES`; one that is not told may run all
    the same."""
    events, operators = facts.get(HOST_EVENTS), facts.get(OPERATORS)
    names = [array_of(table, "name") for table in (events, operators) if table is not None]
    stacks = [array_of(table, "call_stack") for table in (events, operators) if table is not None]
    return named_in(
        (text for column in names for text in column.categories),
        (text for column in (*names, *stacks) for text in column.categories),
    )


def named_in(operators: Iterable[str], frames: Iterable[str]) -> tuple[str, ...]:
    """The software that names of operators, and frames of Python (of several in a text each has its line), tell."""
    spaces = {name.partition("::")[0] for name in operators if "::" in name}
    told = {NAMESPACES[space] for space in spaces if space in NAMESPACES}
    # One text, in which one package after the other is looked for: there are thousands of stacks.
    text = "\n".join(frames)
    for package, name in PACKAGES.items():
        if name not in told and f"{package}/" in text and re.search(_FILE.format(package=package), text, re.MULTILINE):
            told.add(name)
    return tuple(name for name in dict.fromkeys(PACKAGES.values()) if name in told)


_FILE: Final = r"(?:^|[/\\;]){package}/[^\n;(]*\.py\("
"""A frame in a file of a package."""
