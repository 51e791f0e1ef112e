"""All that a plugin may import, by role; what is not here is private and may change without notice.

This module has what registration needs, and is light: a plugin imports it at its top, and the modules of its roles
(`facts`, `advisors`, `loaders`, `rules`, `renderers`, `testing`), of which some import pandas, within the hooks.
"""

from __future__ import annotations

from advisor_core.contracts.capturing import CaptureOption
from advisor_core.contracts.labels import Label
from advisor_core.contracts.owner import Owner
from advisor_core.contracts.registry import Registry, Renderer, Ruleset
from advisor_core.plugins.hookspecs import hookimpl
from advisor_core.text.base import Scalar, Text
from advisor_core.text.packaged import packaged_yaml
from advisor_core.vocabulary.chips import ChipModel, read_chips
from advisor_core.vocabulary.host_labels import LedgerLeaf
from advisor_core.vocabulary.operator_class import OperatorWords
from advisor_core.vocabulary.phases import PhaseMark
from advisor_core.vocabulary.vocabulary import Vocabulary, read_vocabulary

API_VERSION = 1
"""Rises when something here is taken away or changes its meaning; what is added does not raise it."""

__all__ = [
    "API_VERSION",
    "CaptureOption",
    "ChipModel",
    "Label",
    "LedgerLeaf",
    "OperatorWords",
    "Owner",
    "PhaseMark",
    "Registry",
    "Renderer",
    "Ruleset",
    "Scalar",
    "Text",
    "Vocabulary",
    "hookimpl",
    "packaged_yaml",
    "read_chips",
    "read_vocabulary",
]
