"""Registers the words, the loader and the capture options of GPUs, by the same hooks as any plugin's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor_core.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from advisor_core.contracts.capturing import CaptureOption
    from advisor_core.contracts.profile import Loader
    from advisor_core.contracts.registry import Registry
    from advisor_core.vocabulary.chips import ChipModel
    from advisor_core.vocabulary.vocabulary import Vocabulary

PACKAGE = "advisor_core.gpu"


@hookimpl
def advisor_register_loaders(registry: Registry[Loader]) -> None:
    from advisor_core.loaders.kineto.loader import KinetoLoader

    registry.add(KinetoLoader())


@hookimpl
def advisor_register_vocabularies(registry: Registry[Vocabulary]) -> None:
    from advisor_core.vocabulary.vocabulary import read_vocabulary

    registry.add(read_vocabulary("gpu", PACKAGE, "vocabulary.yaml", "operator_classes.yaml"))


@hookimpl
def advisor_register_chips(registry: Registry[ChipModel]) -> None:
    from advisor_core.vocabulary.chips import read_chips

    registry.add(*read_chips(PACKAGE, "chips.yaml", "gpu"))


@hookimpl
def advisor_register_capture_options(registry: Registry[CaptureOption]) -> None:
    from advisor_core.contracts.capturing import read_options

    registry.add(*read_options(PACKAGE, "capture_options.yaml", "gpu"))
