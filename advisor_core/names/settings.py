"""Settings of a job and of an advice, and which of them exclude each other.

A setting in use is written ``NAME=VALUE``; a variable that holds a list of options counts as one setting per option:
``PYTORCH_NPU_ALLOC_CONF=expandable_segments:True``. What has no value (an API, a feature such as graph-capture) is its
name alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """A setting that an advice gives. ``default``: its value where it is not set. ``separator``: of the options of a
    variable that holds several."""

    name: str
    value: str
    default: str | None = None
    separator: str | None = None

    def is_set(self, recorded: Mapping[str, str]) -> bool:
        """Whether the recorded variables (empty text: recorded as not set) have this value, or this option, already.
        ``False`` where the variable is not recorded."""
        if self.name not in recorded:
            return False
        value = recorded[self.name].strip()
        if not value:
            return self.default is not None and _same(self.default, self.value)
        if self.separator is None:
            return _same(value, self.value)
        has = {option.strip().lower() for option in value.split(self.separator)}
        return all(option.strip().lower() in has for option in self.value.split(self.separator))

    def beside(self, recorded: Mapping[str, str]) -> str:
        """The value to set: beside the recorded options, where the variable holds a list of them."""
        value = recorded.get(self.name, "").strip()
        if self.separator is None or not value:
            return self.value
        new = {option.partition(":")[0].strip() for option in self.value.split(self.separator)}
        kept = [option for option in value.split(self.separator) if option.partition(":")[0].strip() not in new]
        return self.separator.join([*kept, self.value])

    def in_use(self) -> tuple[str, ...]:
        """The setting as ``NAME=VALUE``, an item per option."""
        values = self.value.split(self.separator) if self.separator else [self.value]
        return tuple(f"{self.name}={value.strip()}" for value in values)


def concerns(excluded: str, used: str) -> bool:
    """Whether ``excluded`` (a name, ``NAME=VALUE`` or ``NAME=OPTION``) is about what is in use."""
    if excluded.lower() == used.lower():
        return True
    return used.lower().startswith((f"{excluded.lower()}=", f"{excluded.lower()}:"))


def clash(
    used: Collection[str], excluded: Iterable[str], others: Collection[str], excluded_by_others: Iterable[str]
) -> bool:
    """Whether ``used`` and ``others`` cannot be combined: one side excludes what the other uses, or both give the same
    setting (or the same option of it) different values."""
    return (
        any(concerns(item, other) for item in excluded for other in others)
        or any(concerns(item, own) for item in excluded_by_others for own in used)
        or any(_differ(own, other) for own in used for other in others)
    )


def _differ(one: str, other: str) -> bool:
    """Whether both give the same setting, with different values."""
    name, _, value = one.partition("=")
    other_name, _, other_value = other.partition("=")
    if name != other_name or not value or not other_value or _same(value, other_value):
        return False
    option, colon, _ = value.partition(":")
    other_option, other_colon, _ = other_value.partition(":")
    return option == other_option or not (colon and other_colon)


def _same(one: str, other: str) -> bool:
    return one.strip().lower() == other.strip().lower()
