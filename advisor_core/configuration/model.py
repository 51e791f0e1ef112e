"""The keys of a settings file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model

Names = list[str]
Threshold = bool | int | float | str
Chosen = list[str] | dict[str, str]


class Configuration(Model):
    """The settings of a project for ``advisor``. All of it is data: nothing in it names code that is run. Paths are
    relative to the folder of the file."""

    rulesets: Names = Field(default_factory=list, description="files or folders of rules, as `--ruleset`")
    select: Chosen = Field(
        default_factory=list,
        description="judge only these rules: ids, names or prefixes; or a table of them to reasons",
    )
    ignore: Chosen = Field(
        default_factory=list, description="rules that are left out: a list, or a table of them to reasons"
    )
    set: dict[str, Threshold | dict[str, Threshold]] = Field(
        default_factory=dict, description='thresholds: `"HD001.idle_share" = "30 %"`, or a table per rule'
    )
    fail_on: Names = Field(default_factory=list, description="conditions that fail a run, as `--fail-on`")
    baseline: str | None = Field(None, description="file that `advisor baseline write` wrote")
    format: Names = Field(default_factory=list, description="what `advisor run` writes, as `--format`")
    output: str | None = Field(None, min_length=1, description="folder for the report of `advisor run`")
    lang: Literal["en", "zh"] = Field("en", description="language of reports and answers")
    deep: str | None = Field(None, min_length=1, description='ranks that are read in depth: `"16"`, as `--deep`')
    phase_marks: dict[str, str] = Field(
        default_factory=dict, description='marks in the trace to phases: `my_generate = "rollout"`, as `--phase-mark`'
    )
    cache_gib: float = Field(
        2.0,
        ge=0,
        allow_inf_nan=False,
        description="GiB that ranks which were read may take in the cache directory of the user; 0: as `--no-cache`",
    )
    redact: bool = Field(False, description="as `--redact`")
    redact_words: Names = Field(
        default_factory=list, description="words that `--redact` leaves out, as `--redact-word`"
    )

    def thresholds(self) -> dict[str, tuple[tuple[str, ...], Threshold]]:
        """Thresholds by ``ID.param``, each with the path of its key in the file."""
        found: dict[str, tuple[tuple[str, ...], Threshold]] = {}
        for rule, given in self.set.items():
            if isinstance(given, dict):
                found |= {f"{rule}.{param}": (("set", rule, param), value) for param, value in given.items()}
            else:
                found[rule] = (("set", rule), given)
        return found


def reasons(chosen: Chosen) -> dict[str, str]:
    """The names of `Chosen` to their reasons; empty where none is given."""
    return dict(chosen) if isinstance(chosen, dict) else dict.fromkeys(chosen, "")
