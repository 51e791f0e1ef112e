"""Answers that take minutes, kept from one run of the benchmark to the next: each is a file, whose name is a digest of
all that the answer depends on. Another source has other files; ``make clean`` takes them all away."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

FOLDER = Path(__file__).parent.parent.parent / "build"


def kept(path: Path, found: Callable[[], str]) -> str:
    """The text of a file, or the answer, which is the text from then on."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = found()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Another process may look for the same: a file is there as a whole or not at all.
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as written:
        written.write(text)
    Path(written.name).replace(path)
    return text


@cache
def version_of(sources: tuple[Path, ...]) -> str:
    """A digest of the version of Python and of all code and data of some files and folders."""
    digest = sha256(sys.version.encode())
    for source in sources:
        files = [source] if source.is_file() else sorted(source.rglob("*"))
        for file in files:
            if file.suffix in {".py", ".yaml", ".gz"}:
                digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
