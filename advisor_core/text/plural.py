"""The form of an English word that fits a count."""

from __future__ import annotations

from numbers import Integral


def plural(count: object, one: str, many: str) -> str:
    """``one`` for a count of exactly 1, else ``many``, also where the count is not known.

    >>> plural(1, "rank waits", "ranks wait"), plural(0, "rank waits", "ranks wait")
    ('rank waits', 'ranks wait')
    """
    return one if isinstance(count, int | float) and not isinstance(count, bool) and count == 1 else many


class Count(int):
    """A number of things; as a field of a text it chooses between two forms.

    >>> "{n} {n:rank waits|ranks wait}".format(n=Count(2))
    '2 ranks wait'
    """

    def __format__(self, spec: str) -> str:
        one, bar, many = spec.partition("|")
        return plural(int(self), one, many) if bar else int(self).__format__(spec)


def countable(value: object) -> object:
    """Whole numbers, also those of numpy, as a `Count`, anything else as it is."""
    return Count(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
