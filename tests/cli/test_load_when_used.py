"""Libraries that are imported and not yet loaded, each in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest


def printed(code: str, *path: Path) -> str:
    before = f"import sys\nsys.path[:0] = {[str(folder) for folder in path]}\n"
    before += "from advisor_core.cli.load_when_used import load_when_used\n"
    return subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "slow_package"
    package.mkdir()
    (package / "__init__.py").write_text("print('loads')\nfrom slow_package import part\nvalue = part.VALUE\n")
    (package / "part.py").write_text("VALUE = 3\n")
    return tmp_path


def test_a_package_is_loaded_when_something_of_it_is_used(folder: Path) -> None:
    code = (
        "load_when_used('slow_package')\n"
        "import slow_package\nimport slow_package as other\nprint('imported')\n"
        "print(slow_package.value, other is slow_package, type(other).__name__, other.__name__)\n"
        "print(other.value)"
    )
    assert printed(code, folder).split("\n") == ["imported", "loads", "3 True module slow_package", "3", ""]


@pytest.mark.parametrize("use", ["from slow_package import value as found", "import slow_package.part as found"])
def test_so_is_one_by_an_import_out_of_it(use: str, folder: Path) -> None:
    code = f"load_when_used('slow_package')\nprint('begins')\n{use}\nimport slow_package\nprint(slow_package.value)"
    assert printed(code, folder).split("\n") == ["begins", "loads", "3", ""]


def test_what_is_imported_already_or_not_there_stays_as_it_is(folder: Path) -> None:
    code = (
        "import slow_package\nbefore = vars(slow_package).copy()\n"
        "load_when_used('slow_package', 'no_such_package')\n"
        "print(vars(slow_package) == before, 'no_such_package' in sys.modules)"
    )
    assert printed(code, folder).split("\n") == ["loads", "True False", ""]


def test_commands_that_measure_nothing_load_no_pandas() -> None:
    """What modules declare that measure, such as columns, takes none: no frame, and no type of Arrow, is made by an
    import."""
    code = (
        "import atexit\nfrom advisor_core.cli.main import main\n"
        "atexit.register(lambda: print('pandas.core' in sys.modules, 'pyarrow.lib' in sys.modules))\n"
        "sys.argv = ['advisor', 'rules', 'show', 'HD001']\nmain()"
    )
    assert printed(code).splitlines()[-1] == "False False"


MEASURING = ["advisors.host_dispatch", "advisors.fusion", "numpy._core", "pandas.core", "pyarrow.lib"]


def test_a_kept_answer_imports_nothing_that_measures(short_job: Path, tmp_path: Path) -> None:
    """Neither advisors nor numpy: the profile is found, the result is taken from the cache, the report is written."""
    job = shutil.copytree(short_job, tmp_path / "job")
    old = time.time_ns() - 60_000_000_000  # what has just changed is not kept
    for file in job.rglob("*"):
        os.utime(file, ns=(old, old))
    few = ["--select", "HD001,NS010", "--jobs", "1"]
    run = ["run", str(job), "-q", *few, "--format", "html,md,json", "-o", str(tmp_path / "report")]
    code = (
        f"import atexit, os\nos.environ['XDG_CACHE_HOME'] = {str(tmp_path / 'cache')!r}\n"
        "from advisor_core.cli.main import main\n"
        f"atexit.register(lambda: print('imported', *(name for name in {MEASURING!r} if name in sys.modules)))\n"
        f"sys.argv = ['advisor', *{run!r}]\nmain()"
    )
    assert printed(code).split()[1:] == MEASURING
    assert printed(code).split()[1:] == []
