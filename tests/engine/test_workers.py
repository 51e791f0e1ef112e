"""Further processes: copies of this one where that is possible, started anew elsewhere; both do the same."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.run import workers
from advisor_core.run.work import WATCHING
from advisor_core.run.workers import DiedError, Workers, can_fork

SOURCES = [RankInput(Path(), Path(f"rank{rank}"), "test", rank, "test", 1) for rank in range(4)]

kept: list[int] = []


def keep(source: RankInput, text: str = "") -> tuple[int, int, str]:
    """The process, how often it was called in it, and what it was called with."""
    kept.append(source.rank)
    return os.getpid(), len(kept), text


def refuse(source: RankInput) -> None:
    raise InputError(f"{source.directory}: no profile")


def die(source: RankInput) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def unpicklable(source: RankInput) -> object:
    return threading.Lock()


@pytest.fixture(params=["fork", "spawn"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system makes no copies of processes")
    monkeypatch.setattr(workers, "can_fork", lambda: request.param == "fork")
    monkeypatch.setattr(f"{__name__}.kept", [])
    return str(request.param)


def test_a_rank_stays_in_its_process(way: str) -> None:
    with Workers(3) as pool:
        first = [pool.start(number, keep, source) for number, source in enumerate(SOURCES)]
        again = [pool.start(number, keep, source, text="again") for number, source in enumerate(SOURCES)]
        before = [call() for call in first]
        after = [call() for call in again]
    assert [process for process, _, _ in before] == [process for process, _, _ in after]
    assert before[0][0] == before[3][0] == os.getpid()
    assert len({process for process, _, _ in before}) == 3
    assert [number for _, number, _ in after] == [3, 2, 2, 4]
    assert {text for _, _, text in after} == {"again"}


def test_a_copy_has_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system makes no copies of processes")
    monkeypatch.setattr(workers, "can_fork", lambda: True)
    monkeypatch.setattr(f"{__name__}.kept", [7, 7, 7])
    with Workers(2) as pool:
        assert pool.start(1, keep, SOURCES[1])()[1] == 4
    assert kept == [7, 7, 7]


def test_what_a_rank_raises_is_raised_here(way: str) -> None:
    with Workers(2) as pool:
        call = pool.start(1, refuse, SOURCES[1])
        with pytest.raises(InputError, match=r"rank1: no profile") as raised:
            call()
        assert "in refuse" in raised.value.__notes__[0]
        assert pool.start(1, keep, SOURCES[1])()[1] == 1


def test_an_answer_that_cannot_be_passed_on_is_an_error(way: str) -> None:
    with Workers(2) as pool, pytest.raises(TypeError, match="lock"):
        pool.start(1, unpicklable, SOURCES[1])()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes that the system kills")
def test_a_process_that_the_system_kills_is_told(way: str) -> None:
    with Workers(3) as pool:
        dead, alive = pool.start(1, die, SOURCES[1]), pool.start(2, keep, SOURCES[2])
        with pytest.raises(DiedError):
            dead()
        assert alive()[1] == 1
        with pytest.raises(DiedError):
            pool.start(1, keep, SOURCES[1])()


def test_no_copies_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    main = [threading.main_thread()]
    shows, reads = threading.Thread(name=WATCHING), threading.Thread(name="reads")
    allowed = {}
    for name, there in (("alone", []), ("shows", [shows]), ("reads", [shows, reads])):
        monkeypatch.setattr(threading, "enumerate", lambda there=there: main + there)
        allowed[name] = can_fork()
    assert allowed == {"alone": True, "shows": True, "reads": False}
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(threading, "enumerate", lambda: main)
    assert not can_fork()
