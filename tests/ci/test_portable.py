"""The check for what only POSIX has finds it, and leaves alone what every system has."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest

from advisor_core.run import workers
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def portable() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / ".ci")
        yield importlib.import_module("check_portable")


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.fork()",
        "import fcntl",
        "from resource import getrusage",
        "from os import mkfifo",
        "import signal\nprocess.send(signal.SIGKILL)",
        "open('x')",
        "import io\nio.open('x', 'w')",
        "path.open()",
        "path.open('a', newline='')",
        "path.read_text()",
        "path.write_text('x')",
        "where = '/tmp/x'",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "try:\n    import fcntl\nexcept OSError:\n    fcntl = None",
        "def one():\n    hasattr(os, 'fork')\ndef other():\n    os.fork()",
    ],
)
def test_what_is_found(portable: ModuleType, source: str) -> None:
    assert len(list(portable.mistakes(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.getpid()",
        "open('x', 'rb')",
        "open('x', encoding='utf-8')",
        "path.open(mode='wb')",
        "path.read_text('utf-8')",
        "path.write_text('x', encoding='utf-8')",
        "gzip.open('x')",
        '"""/tmp/ in a docstring"""',
        "def number():\n    return os.getuid() if hasattr(os, 'getuid') else 0",
        "open('x', **options)",
        "try:\n    import fcntl\nexcept ModuleNotFoundError:\n    fcntl = None",
    ],
)
def test_what_is_left_alone(portable: ModuleType, source: str) -> None:
    assert list(portable.mistakes(source)) == []


def test_processors_are_counted_where_affinity_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers.usable_processors() >= 1
    monkeypatch.delattr(workers.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(workers.os, "cpu_count", lambda: 3)
    assert workers.usable_processors() == 3
    monkeypatch.setattr(workers.os, "cpu_count", lambda: None)
    assert workers.usable_processors() == 1
