"""The server of the Model Context Protocol: a tool for each question of `Answers`, over stdin and stdout.

The only module that imports ``mcp``, which the extra ``npu-advisor[mcp]`` brings.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from importlib import metadata
from typing import Annotated, Any, Literal, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from advisor_core.serving.answers import AnswerError, Answers, Progress

T = TypeVar("T")

Lang = Literal["en", "zh"]
Profile = Annotated[str, Field(description="A profile below the root of the server, absolute or relative to it.")]
Result = Annotated[str, Field(description="A profile, or the report.json of a run, below the root of the server.")]
Language = Annotated[Lang, Field(description="Language of the text.")]

_INSTRUCTIONS = (
    "Analyses profiles of jobs on NPUs and GPUs. Begin with run, which books where the time of a step went and lists "
    "the problems with a plan; findings gives evidence and advice of a problem by its number, explain how a number "
    "came about, what_if what a change would win, compare whether a change helped, collect what to record next. Times "
    "are ns, sizes bytes, shares of 1. Texts are given in English (en) and Chinese (zh). Nothing is written."
)
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def serve(answers: Answers) -> None:
    """Answer on stdin and stdout until stdin ends."""
    server_of(answers).run("stdio")


def server_of(answers: Answers) -> MCPServer[Any]:
    """A server that is not started."""
    server: MCPServer[Any] = MCPServer(
        "npu-advisor",
        version=metadata.version("npu-advisor"),
        instructions=_INSTRUCTIONS,
        log_level="WARNING",
    )
    # An analysis takes processors and memory for itself, and `Answers` is for one thread.
    one_at_a_time = anyio.Lock()

    async def answered(context: Context[Any], question: Callable[[Progress], T]) -> T:
        count = itertools.count(1)

        def progress(line: str) -> None:
            anyio.from_thread.run(partial(context.report_progress, next(count), message=line))

        try:
            async with one_at_a_time:
                return await anyio.to_thread.run_sync(question, progress)
        except AnswerError as error:
            raise ToolError(str(error)) from None

    @server.tool(name="run", annotations=_READS)
    async def run(
        path: Result,
        context: Context[Any],
        rank: Annotated[int | None, Field(description="Read only this rank.")] = None,
        roles: Annotated[
            list[str] | None, Field(description="Read only these roles of a reinforcement learning job.")
        ] = None,
        step: Annotated[int | None, Field(description="Look only at this step, by its id.")] = None,
        parts: Annotated[
            list[str] | None,
            Field(
                description="Parts of report.json to give instead of the overview: ledger, rules, findings, "
                "critical_path, work, memory, views and others; other_parts of an answer names them."
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Analyse a profile, or read a report.json: where the time of the step went, the numbered problems, the plan.
        The answer holds parts of report.json, by default an overview without evidence."""
        return await answered(
            context,
            lambda progress: answers.run(path, progress, rank=rank, roles=roles or (), step=step, parts=parts or ()),
        )

    @server.tool(name="findings", annotations=_READS)
    async def findings(
        path: Result,
        context: Context[Any],
        what: Annotated[
            str, Field(description="The number of a problem (F2a), a fingerprint, a rule id or name; all if left out.")
        ] = "",
        first: Annotated[int, Field(ge=1, description="How many problems, in the order of the report.")] = 5,
    ) -> dict[str, Any]:
        """Findings with evidence, advice, risk and verification, as report.json has them."""
        return await answered(context, lambda progress: answers.findings(path, progress, what=what, first=first))

    @server.tool(name="explain", annotations=_READS)
    async def explain(
        path: Result,
        what: Annotated[
            str,
            Field(
                description="A problem (F2a), fingerprint, rule id or name, rank (rank 3), ledger path (idle/host), "
                "operator type (MatMulV3) or collective (allReduce)."
            ),
        ],
        context: Context[Any],
        lang: Language = "en",
    ) -> str:
        """How a problem, a rule's state, a rank, a ledger entry, an operator or a collective came about."""
        return await answered(context, lambda progress: answers.explain(path, what, lang, progress))

    @server.tool(name="what_if", annotations=_READS)
    async def what_if(
        path: Profile,
        context: Context[Any],
        without: Annotated[
            list[str] | None, Field(description="Make the changes of these problems, rules or fingerprints.")
        ] = None,
        scale: Annotated[
            dict[str, float] | None, Field(description="Operator type or class to the factor that its kernels take.")
        ] = None,
        rank_as: Annotated[
            dict[int, int] | None, Field(description="Rank to another that it shall be as quick as.")
        ] = None,
    ) -> dict[str, Any]:
        """What a step of the profile would take with changes, by replay of the recording."""
        return await answered(
            context,
            lambda progress: answers.what_if(path, progress, without=without or (), scale=scale, rank_as=rank_as),
        )

    @server.tool(name="compare", annotations=_READS)
    async def compare(
        before: Annotated[
            str, Field(description="A profile, a report.json, or a baseline file (YAML), below the root of the server.")
        ],
        after: Annotated[list[str], Field(description="Profiles or report.json files, each compared with before.")],
        context: Context[Any],
    ) -> dict[str, Any]:
        """Whether the steps became slower or faster, beyond noise or not, and why: compare.json."""
        return await answered(context, lambda progress: answers.compare(before, after, progress))

    @server.tool(name="collect", annotations=_READS)
    async def collect(
        context: Context[Any],
        path: Annotated[
            str, Field(description="A profile or report.json whose unanswered rules it shall answer; may be left out.")
        ] = "",
        tool: Annotated[str, Field(description="What takes the profile, such as torch_npu, verl, vllm, msprof.")] = "",
        lang: Language = "en",
    ) -> str:
        """The configuration of the profiler that answers what could not be answered, as text."""
        return await answered(context, lambda progress: answers.collect(path, tool, lang, progress))

    return server
