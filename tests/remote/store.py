"""A storage that fsspec knows by ``shelf://``, in the memory of the tests."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from fsspec.spec import AbstractFileSystem


class Shelf(AbstractFileSystem):  # type: ignore[misc]
    """``files``: contents by path; ``opened``: how often each was; ``signed``: whether a file has a digest;
    ``hook``: called before a file is read, with its path."""

    protocol = "shelf"
    cachable = False
    files: ClassVar[dict[str, bytes]] = {}
    opened: ClassVar[Counter[str]] = Counter()
    signed: ClassVar[bool] = True
    breaks_after: ClassVar[int | None] = None
    hook: ClassVar[Callable[[str], None]] = staticmethod(lambda path: None)

    @classmethod
    def clear(cls) -> None:
        cls.files, cls.opened, cls.signed, cls.breaks_after = {}, Counter(), True, None
        cls.hook = staticmethod(lambda path: None)

    @classmethod
    def put_all(cls, folder: Path, at: str = "") -> str:
        """Put all that is in a folder, or a file, on the shelf; its URL."""
        above = at or folder.name
        for file in [folder] if folder.is_file() else folder.rglob("*"):
            if file.is_file():
                name = above if file == folder else f"{above}/{file.relative_to(folder).as_posix()}"
                cls.files[name] = file.read_bytes()
        return f"shelf://{above}"

    def info(self, path: str, **more: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        if path in self.files:
            content = self.files[path]
            sign = {"ETag": f'"{hash(content)}"'} if self.signed else {}
            return {"name": path, "size": len(content), "type": "file", **sign}
        if any(name.startswith(f"{path}/") for name in self.files):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **more: Any) -> list[Any]:
        path = self._strip_protocol(path)
        below = [name.removeprefix(f"{path}/") for name in self.files if name.startswith(f"{path}/")]
        children = dict.fromkeys(f"{path}/{name.partition('/')[0]}" for name in below)
        files = [self.info(child) for child in children if child in self.files]
        above = {f"{path}/{name.partition('/')[0]}" for name in below if "/" in name}
        return files + [{"name": child, "type": "directory"} for child in children if child in above]

    def _open(self, path: str, mode: str = "rb", **more: Any) -> io.BytesIO:
        self.hook(path)
        self.opened[path] += 1
        if self.breaks_after is not None:
            return _Broken(self.files[path], self.breaks_after)
        return io.BytesIO(self.files[path])


class _Broken(io.BytesIO):
    """A connection that ends after so many bytes."""

    def __init__(self, content: bytes, after: int) -> None:
        super().__init__(content)
        self._after = after

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() >= self._after:
            raise ConnectionResetError("the server has gone")
        return super().read(min(self._after, size) if size and size > 0 else self._after)
