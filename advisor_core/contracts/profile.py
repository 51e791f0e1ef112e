"""The output of a loader: the tables and the recorded settings of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from advisor_core.contracts.doubt import DOUBT, Doubt
from advisor_core.contracts.keys import Answers, Key
from advisor_core.contracts.missing import Missing
from advisor_core.contracts.tables import SCHEMAS, Table
from advisor_core.result.run import Diagnostic, InputFile
from advisor_core.text.base import Scalar
from advisor_core.vocabulary.phases import Aliases
from advisor_core.vocabulary.vocabulary import Vocabulary


class InputError(Exception):
    """The input cannot be used at all; the message names the path and what is wrong with it. Exit code 3."""


class StepError(Exception):
    """``--step`` or ``--rank`` names something that the profile does not have. Exit code 2."""


class RoleError(Exception):
    """The role that the user chose is not there; the message names those that are. Exit code 2."""


@dataclass(frozen=True)
class RankInput:
    """One rank's profile on disk, found but not read. Picklable: ranks may be loaded in other processes.

    ``root``: the path the user gave; file names in a report are relative to it. ``directory``: where the files are; the
    file itself where a recording is one file. ``recorded_at``: digits that tell when it was recorded, as far as its
    name does; '' unknown. ``vendor``: as of `Profile`.
    ``problem``: why a profile that was recognised cannot be used, '' for one that can; loading it raises `InputError`.
    ``role``: the role that this profile is of, '' for one that is not known to be of one. ``older``: what holds
    further recordings of the same rank and role, which are not read. ``coarse``: only sums of the rank are recorded, or
    read; a profile of the same rank and role that is not coarse takes its place. ``has_sums``: its loader can load the
    sums of its steps alone, when it is told that the input is ``coarse``.
    """

    root: Path
    directory: Path
    kind: str
    rank: int
    loader: str
    bytes: int
    problem: str = ""
    role: str = ""
    older: tuple[Path, ...] = ()
    recorded_at: str = ""
    vendor: str = ""
    coarse: bool = False
    has_sums: bool = False


@dataclass(frozen=True)
class Profile:
    """One rank's profile as read.

    ``vendor``: whose words the tables use, '' for none that a plugin knows; ``maker``: who made the device, where
    exports of several have the same form, '' unknown; ``vocabulary``: these words, which the host
    sets. ``level``: ``level_none``, ``level0``, ``level1``, ``level2`` or ``None`` where it is not recorded.
    ``profiler``: recorded options of the profiler. ``variables``: recorded environment variables, '' = unset; a
    variable that is not in it is unknown. ``world_size``, ``parallel`` and ``groups`` as far as recorded; ``groups``
    maps the hash of a communication group, as the tables name it, to its global ranks, ``group_names`` to the name that
    the framework gave it (``tp``, ``dp_cp``), where it gave one. ``selected_step``: the only
    step the user wants to see. ``left_out_step``: the first step, where another rank of the job tells that it warms
    up. ``keeps_first_step``: the ranks of the job tell that the first step does not warm up, though this one waited
    in it. ``role``: as of `RankInput`; ``phase_marks``: what further names of marks stand for.
    """

    rank: int
    kind: str
    path: str
    level: str | None
    framework: str | None
    versions: Mapping[str, str]
    profiler: Mapping[str, Scalar]
    variables: Mapping[str, str]
    tables: Mapping[str, Table]
    missing: Mapping[str, Missing]
    files: Sequence[InputFile]
    diagnostics: Sequence[Diagnostic]
    chip: Mapping[str, Scalar] = field(default_factory=dict)
    world_size: int | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    group_names: Mapping[str, str] = field(default_factory=dict)
    selected_step: int | None = None
    left_out_step: int | None = None
    keeps_first_step: bool = False
    role: str = ""
    phase_marks: Aliases = ()
    setting_files: Mapping[str, str] = field(default_factory=dict)
    """The file that the settings were read from: ``profiler``, ``variables``."""
    vendor: str = ""
    maker: str = ""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    coarse: bool = False
    """As of `RankInput`."""
    doubt: Doubt = field(default_factory=Doubt)
    """Contradictions between its files; the host finds them."""

    def given(self) -> Answers:
        """The sources of facts: the profile itself, its tables, and the reasons why others are missing."""
        answers = Answers()
        answers.put(PROFILE, self)
        answers.put(DOUBT, self.doubt)
        for name, schema in SCHEMAS.items():
            if name in self.tables:
                answers.put(schema, self.tables[name].frame)
            elif name in self.missing:
                answers.put(schema, self.missing[name])
        return answers


PROFILE: Key[Profile] = Key("profile", "the recorded settings of the rank, and its tables with their sources")


HOST_SLOWING_OPTIONS: Final = ("with_stack", "with_modules", "record_shapes", "profile_memory")
"""Options of a profiler that make the host slower while it records."""


class Loader(Protocol):
    """A format.

    A loader may also have ``traces(source) -> Sequence[Path]``: the files of trace events that a rank was recorded in,
    which slices are cut from; of a rank without any they are made of its tables.
    """

    @property
    def name(self) -> str: ...

    def discover(self, root: Path) -> Sequence[RankInput]:
        """The profiles of this format at or below ``root``; empty where there are none. Reads names, not contents,
        as far as possible. A profile that is recognised but cannot be used is among them, with its ``problem``."""
        ...

    def load(self, source: RankInput) -> Profile:
        """Read one rank. Whatever is missing or damaged becomes a diagnostic and an entry of ``missing``."""
        ...
