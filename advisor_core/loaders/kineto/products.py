"""Operands and results of matrix products, from the recorded inputs of the operators that are one."""

from __future__ import annotations

from advisor_core.loaders.kineto import words


def operands(operator: str, shapes: str, dtypes: str) -> tuple[str, str, str]:
    """Shapes and types of the two operands, and the shape of the result, of an operator of the canonical ``shapes`` and
    ``dtypes``; what was given for one that is no product, or whose shapes are not those of one.

    >>> operands("aten::addmm", "512;141,512;512,2048;;", "BF16;BF16;BF16;UNDEFINED;UNDEFINED")
    ('141,512;512,2048', 'BF16;BF16', '141,2048')
    """
    places = words.PRODUCTS.get(operator)
    texts, types = shapes.split(";"), dtypes.split(";")
    if places is None or max(places) >= min(len(texts), len(types)):
        return shapes, dtypes, ""
    left, right = ([int(axis) for axis in texts[place].split(",") if axis] for place in places)
    if len(left) != len(right) or len(left) < 2 or left[-1] != right[-2]:
        return shapes, dtypes, ""
    result = ",".join(map(str, [*left[:-1], right[-1]]))
    return ";".join(texts[place] for place in places), ";".join(types[place] for place in places), result
