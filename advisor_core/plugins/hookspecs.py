"""The hooks of entry-point group ``npu_advisor.v1``.

Each receives a registry and adds to it. Registration must be cheap: import heavy modules inside the hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from advisor_core.contracts.advisor import Advisor
    from advisor_core.contracts.capturing import CaptureOption
    from advisor_core.contracts.drawing import Drawing
    from advisor_core.contracts.facts import Fact
    from advisor_core.contracts.labels import Label
    from advisor_core.contracts.profile import Loader
    from advisor_core.contracts.registry import Registry, Renderer, Ruleset
    from advisor_core.vocabulary.chips import ChipModel
    from advisor_core.vocabulary.host_labels import LedgerLeaf
    from advisor_core.vocabulary.operator_class import OperatorWords
    from advisor_core.vocabulary.phases import PhaseMark
    from advisor_core.vocabulary.vocabulary import Vocabulary

GROUP = "npu_advisor.v1"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@hookspec
def advisor_register_loaders(registry: Registry[Loader]) -> None:
    """Add formats that can be read."""


@hookspec
def advisor_register_vocabularies(registry: Registry[Vocabulary]) -> None:
    """Add the words of a vendor's exports."""


@hookspec
def advisor_register_operator_words(registry: Registry[OperatorWords]) -> None:
    """Add words of one's own kernels, and the classes that they belong to."""


@hookspec
def advisor_register_ledger_leaves(registry: Registry[LedgerLeaf]) -> None:
    """Add leaves of the ledger, for calls of the host."""


@hookspec
def advisor_register_phase_marks(registry: Registry[PhaseMark]) -> None:
    """Add names of marks and roles, and the phases that they are about."""


@hookspec
def advisor_register_chips(registry: Registry[ChipModel]) -> None:
    """Add models of chips, with what they can do at most."""


@hookspec
def advisor_register_labels(registry: Registry[Label]) -> None:
    """Add headings and labels, in English and Chinese."""


@hookspec
def advisor_register_capture_options(registry: Registry[CaptureOption]) -> None:
    """Add what a profile may have to record."""


@hookspec
def advisor_register_facts(registry: Registry[Fact[object]]) -> None:
    """Add facts that advisors can need."""


@hookspec
def advisor_register_advisors(registry: Registry[Advisor]) -> None:
    """Add measurements that rules can judge."""


@hookspec
def advisor_register_drawings(registry: Registry[Drawing]) -> None:
    """Add views of a rank that reports show."""


@hookspec
def advisor_register_rulesets(registry: Registry[Ruleset]) -> None:
    """Add folders of rule files."""


@hookspec
def advisor_register_renderers(registry: Registry[Renderer]) -> None:
    """Add formats that a report can be written in."""
