"""One spelling for what Kineto traces spell differently, by version and by device.

Every function takes one text and gives the canonical one; it is applied to the distinct values of a column, not to its
rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from advisor_core.text.packaged import packaged_yaml
from advisor_core.vocabulary.operator_class import OTHER, OperatorClasses

VENDOR: Final = "gpu"
"""The vocabulary that profiles of these traces are read with."""

_PACKAGE: Final = "advisor_core.gpu"
_WORDS: Final[dict[str, Any]] = packaged_yaml(_PACKAGE, "exporter.yaml")
_CLASSES: Final = OperatorClasses.of(packaged_yaml(_PACKAGE, "operator_classes.yaml"))

GRAPH_LAUNCH: Final = re.compile(_WORDS["graph_launch"])
COLLECTIVE_KERNEL: Final = re.compile(_WORDS["collective_kernel"])
BESIDE_THE_OPERATOR: Final = re.compile(_WORDS["beside_the_operator"])
WRAPPING: Final = re.compile(_WORDS["wrapping_operators"])
RANK_IN_NAME: Final = re.compile(_WORDS["rank_in_name"])
SPAN_IN_NAME: Final = re.compile(_WORDS["span_in_name"])
NAMES_OF_OTHERS: Final = re.compile(_WORDS["names_of_others"])
LAUNCHING_CALLS: Final = re.compile(packaged_yaml(_PACKAGE, "vocabulary.yaml")["launching_calls"])
CAPTURE_BEGINS: Final = re.compile(_WORDS["capture_begins"])
CAPTURE_ENDS: Final = re.compile(_WORDS["capture_ends"])
COLLECTION: Final = re.compile(_WORDS["collection"])
MARK: Final = re.compile(_WORDS["mark"])
COLLECTIVE_MARK: Final = re.compile(_WORDS["collective_mark"])
STEP: Final = re.compile(_WORDS["step"])
PRODUCTS: Final[dict[str, list[int]]] = _WORDS["products"]
"""Operators that are a matrix product, and which of their inputs are the operands."""
RESULTS: Final[dict[str, Any]] = _WORDS["results"]
"""Operators by the shapes and types of their results, as in the file."""
WITH_VALUES: Final = frozenset(
    f"aten::{name}"
    for kind in ("like_first_as", "reduces", "joins", "selects_rows", "ranks", "convolves", "convolves_back")
    for name in _WORDS["results"][kind]
)
"""Operators of which values of the arguments are needed to tell the result."""
TENSOR_DTYPES: Final = frozenset(_WORDS["dtypes"].values())

KERNEL: Final = "Kernel"
MEMCPY: Final = "Memcpy"
MEMSET: Final = "Memset"
SYNC: Final = "Sync"


def host_category(category: str) -> str:
    """cpu_op, python_function, user_annotation or cann; '' for what is none of the host."""
    return str(_WORDS["host"].get(category.lower(), ""))


def device_task(category: str) -> str:
    """Kernel, Memcpy, Memset or Sync; '' for what does not run on the device."""
    return str(_WORDS["device"].get(category.lower(), ""))


def flow_kind(category: str) -> str:
    """'' for a flow that is not read."""
    return str(_WORDS["flows"].get(category.lower(), ""))


def dtype(text: str) -> str:
    """FLOAT, BF16 ...; UNDEFINED for what is no tensor, and the text itself for a type that is not known."""
    if text in ("", "Scalar", "ScalarList", "GenericList", "Int", "Bool", "Double", "None"):
        return "UNDEFINED"
    return str(_WORDS["dtypes"].get(text, _WORDS["dtypes"].get(text.lower(), text)))


def dtypes(recorded: str) -> str:
    """``Input type`` as recorded (JSON) to canonical types, ``;`` between tensors."""
    return ";".join(dtype(item) if isinstance(item, str) else "UNDEFINED" for item in items(recorded))


def shapes(recorded: str) -> str:
    """``Input Dims`` as recorded (JSON), ``;`` between tensors and ``,`` between axes; an empty shape for a scalar and
    for a list of tensors."""
    return ";".join(
        ",".join(map(str, item)) if isinstance(item, list) and all(isinstance(axis, int) for axis in item) else ""
        for item in items(recorded)
    )


def items(recorded: str) -> list[Any]:
    """The list that a JSON text is; nothing where it is none."""
    try:
        items = json.loads(recorded) if recorded else []
    except ValueError:
        return []
    return items if isinstance(items, list) else []


def stack(text: str) -> str:
    """One frame per line, innermost first, of frames with ``;`` between them."""
    return "\n".join(frame.strip() for frame in text.split(";") if frame.strip())


def operation(name: str) -> str:
    """allReduce, reduceScatter ... of the name of a collective as recorded; that name where it is not known."""
    bare = name.replace("_", "").lower()
    prefixes = [word for word in _WORDS["operations"] if bare.startswith(word)]
    return str(_WORDS["operations"][max(prefixes, key=len)]) if prefixes else name


def moved_share(operation_name: str, ranks: int) -> float:
    """The traffic of an operation over the links per rank, as a multiple of its message (nccl-tests,
    PERFORMANCE.md)."""
    part = (ranks - 1) / ranks if ranks > 0 else float("nan")
    if operation_name in _WORDS["part_moved_twice"]:
        return 2 * part
    return part if operation_name in _WORDS["part_moved"] else 1.0


def copy_kind(name: str) -> str:
    """``Memcpy HtoD`` of ``Memcpy HtoD (Pageable -> Device)``, and of ``CopyHostToDevice``."""
    return " ".join(name.split()[:2]) if name.startswith(MEMCPY) else str(_WORDS["copies"].get(name, name))


def has_class(type_name: str) -> bool:
    """Whether the words of an operator or a kernel name tell a class of work."""
    return _CLASSES.class_of(type_name) != OTHER


def multiplies(kernel: str) -> bool:
    """Whether a kernel is the one of a matrix product, and none that fills or adds up beside it."""
    return _CLASSES.class_of(short_name(kernel)) == "matmul" and not _REDUCES.search(kernel)


def kernel_type(kernel: str, operator: str) -> str:
    """The type of a kernel: the operator that launched it, which tells more reliably than the kernel's name what it
    computes; its own name in short where the operator is not known (''), says no class of work, or where the kernel
    does something beside it (layout conversions, copies)."""
    if BESIDE_THE_OPERATOR.search(short := short_name(kernel)):
        return copy_kind(short)
    telling = operator and not WRAPPING.search(operator) and has_class(operator)
    return operator if telling else short


_TENSILE: Final = re.compile(r"Cijk_\w+?_MT\d+x\d+x\d+(?=_)")
"""A product of Tensile up to the size of its tiles; some sixty options of the kernel follow."""
_REDUCES: Final = re.compile(r"(?i)split_?k_?reduce|reduce_?split")
_NAMED_BY_LENGTH: Final = re.compile(r"(\d+)(?=[A-Za-z_])")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_]\w*")
_ANONYMOUS: Final = "(anonymous namespace)::"
_PLAIN_TYPES: Final = frozenset(
    {"float", "int", "long", "bool", "double", "char", "short", "true", "false", "unsigned", "BFloat16", "Half"}
    | {"float2", "__half", "__nv_bfloat16", "__hip_bfloat16", "bfloat16_t", "half_t", "uint8_t", "int8_t"}
)


def short_name(kernel: str) -> str:
    """The name of a kernel without namespaces, types and arguments; with the first template argument that is no plain
    type, which in the kernels of PyTorch and CUTLASS says what they compute.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)")
    'vectorized_elementwise_kernel<CUDAFunctor_add>'
    >>> short_name("volta_sgemm_64x64_nt"), short_name("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI")
    ('volta_sgemm_64x64_nt', 'kentry<Rmsnorm2dFwd>')
    >>> short_name("Cijk_Alik_Bljk_BBS_BH_MT256x192x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1")
    'Cijk_Alik_Bljk_BBS_BH_MT256x192x64'
    """
    if kernel.startswith("_ZN"):
        names = list(_mangled(kernel))[1:3]  # the first is a namespace
        return _with_argument(names) if names else kernel
    if tensile := _TENSILE.match(kernel):
        return tensile[0]
    bare = kernel.replace(_ANONYMOUS, "").removeprefix("void ")
    base = _last_name(bare)
    if not _IDENTIFIER.fullmatch(base):
        return kernel
    named = (_last_name(argument) for argument in _template_arguments(bare))
    telling = (name for name in named if _IDENTIFIER.fullmatch(name) and name not in _PLAIN_TYPES)
    return _with_argument([base, *([first] if (first := next(telling, "")) else [])])


def _last_name(text: str) -> str:
    """The name at the end of the namespaces, before template arguments and parameters."""
    return re.split(r"[<(]", text.strip(), maxsplit=1)[0].rpartition("::")[2].strip()


def _template_arguments(kernel: str) -> Iterator[str]:
    """The template arguments of the kernel itself, without those of the arguments."""
    opening = kernel.find("<")
    if opening < 0 or "(" in kernel[:opening]:
        return
    depth, start = 0, opening + 1
    for place in range(opening, len(kernel)):
        character = kernel[place]
        depth += (character in "<(") - (character in ">)")
        if (character == "," and depth == 1) or depth == 0:
            yield kernel[start:place]
            start = place + 1
        if depth == 0:
            return


def _with_argument(names: list[str]) -> str:
    return names[0] if len(names) < 2 else f"{names[0]}<{names[1]}>"


def _mangled(kernel: str) -> Iterator[str]:
    """The identifiers of a mangled name, each of which follows its length."""
    place = 0
    while found := _NAMED_BY_LENGTH.search(kernel, place):
        name = kernel[found.end() : found.end() + int(found[1][:4])]
        place = found.end()
        if len(name) == int(found[1][:4]) > 1 and _IDENTIFIER.fullmatch(name):
            place += len(name)
            yield name
