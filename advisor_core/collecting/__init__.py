"""Advice on how to profile: which options of a profiler record what a rule lacks, and what they cost.

How a tool is told to record stands in ``tools/``, two files for each.
"""

from __future__ import annotations

from pathlib import Path

TOOLS = tuple(sorted(file.stem for file in Path(__file__).with_name("tools").glob("*.yaml")))
"""The names of the tools, without reading any of their files: the command line lists them."""
