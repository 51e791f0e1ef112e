"""Ctrl-C ends the command with all of its processes, and leaves a whole report or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor_core.cli.console import EXIT_INTERRUPTED
from advisor_core.cli.interrupt import Interrupted, _State, listen, whole

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="groups of processes as POSIX has them")

SLOW = """\
import os, sys, threading, time
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor

def derive(source, options):
    (Path(os.environ["BEGUN"]) / str(source.rank)).touch()
    if os.environ["WHERE"] == "main":
        time.sleep(100)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(time.sleep, 100).result()

if __name__ == "__main__":
    import slow
    from advisor_core.run import pipeline
    from advisor_core.cli.main import main
    pipeline.derive = slow.derive
    main()
"""


@pytest.mark.parametrize("to_all", [True, False], ids=["to the group, as of a terminal", "to the command"])
@pytest.mark.parametrize("where", ["main", "thread"])
def test_nothing_is_left_of_an_interrupted_run(advisor_sample: Path, tmp_path: Path, where: str, to_all: bool) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    arguments = ["run", str(advisor_sample), "--jobs", "2", "--no-cache", "-o", str(tmp_path / "report")]
    ran = subprocess.Popen(
        [sys.executable, str(tmp_path / "slow.py"), *arguments],
        env={**os.environ, "BEGUN": str(begun), "WHERE": where},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(list(begun.iterdir())) < 2:
        assert ran.poll() is None
        time.sleep(0.05)
    (os.killpg if to_all else os.kill)(ran.pid, signal.SIGINT)
    _, told = ran.communicate(timeout=50)
    assert ran.returncode == EXIT_INTERRUPTED
    assert "advisor: interrupted" in told.splitlines()
    assert "Traceback" not in told
    assert not (tmp_path / "report").exists()
    for _ in range(100):
        try:
            os.killpg(ran.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a further process goes on")


def test_a_report_is_not_left_half_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_State, "asked", False)
    before = signal.getsignal(signal.SIGINT)
    written = []
    try:
        listen()
        with pytest.raises(Interrupted), whole():
            for name in ("report.html", "report.md"):
                signal.raise_signal(signal.SIGINT)
                written.append(name)
    finally:
        signal.signal(signal.SIGINT, before)
    assert written == ["report.html", "report.md"]


def test_a_job_in_the_background_goes_on() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        listen()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
