"""Random damage to every file of a profile: a run ends with a report or a reason, never with a traceback, and tells
what it left out. ``NPU_ADVISOR_MUTATIONS=2000`` searches on, with other seeds."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor_core.result.run import RunResult
from tests.conftest import PROFILE
from tests.robustness.command import FEW, KERNELS, OUTPUT, TRACE, advise, run, told
from tests.robustness.damage import BY_ENDING, OF_BYTES, Damage, byte_order_mark, crlf, cut, shuffled_rows

MAIN = (KERNELS, TRACE)
"""The files that everything is derived from: each kind of damage is done to them, each fifth of them in the gate. What
a loader makes of any damage is what `test_damaged_profiles` looks at."""
FIFTH = 5
SMALL = (
    *(f"{OUTPUT}/{name}" for name in ("communication.json", "communication_matrix.json", "step_trace_time.csv")),
    *(f"{OUTPUT}/{name}" for name in ("operator_details.csv", "op_statistic.csv", "api_statistic.csv")),
    *(f"{OUTPUT}/{name}" for name in ("memory_record.csv", "operator_memory.csv", "npu_module_mem.csv")),
    *("profiler_info_0.json", "profiler_metadata.json"),
)
"""The others: each gets a kind of damage, in turn, each third one in the gate; a search tries a second kind."""
HARMLESS = (shuffled_rows, byte_order_mark, crlf)
"""Kinds with a test of their own on the main files: order of rows, byte order mark and line ends are no information."""


def _cases() -> Iterator[tuple[str, Damage, int, bool]]:
    """File, damage, seed, and whether the gate does it."""
    for file in MAIN:
        kinds = [kind for kind in BY_ENDING[Path(file).suffix] if kind not in HARMLESS]
        for number, damage in enumerate(kinds):
            yield file, damage, 0, number % FIFTH == 0
    for number, file in enumerate(SMALL):
        kinds = list(BY_ENDING[Path(file).suffix])
        for step in range(2 if PROFILE == "search" else 1):
            yield file, kinds[(number + 11 * step) % len(kinds)], 0, number % 3 == 0
    more = Random(int(os.environ.get("NPU_ADVISOR_MUTATIONS", "0")))
    for seed in range(1, 1 + int(os.environ.get("NPU_ADVISOR_MUTATIONS", "0"))):
        file = more.choice([*MAIN, *MAIN, *SMALL])
        yield file, more.choice(BY_ENDING[Path(file).suffix]), seed, True


CASES = [
    pytest.param(
        file,
        damage,
        seed,
        id=f"{Path(file).name}-{damage.__name__}-{seed}",
        marks=() if gate else pytest.mark.search,
    )
    for file, damage, seed, gate in _cases()
]


@pytest.fixture(scope="module")
def profile(short_job: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rank 0; a test puts back what it damages."""
    first = sorted(short_job.iterdir())[0]
    return Path(shutil.copytree(first, tmp_path_factory.mktemp("mutations") / first.name))


@pytest.mark.parametrize(("file", "damage", "seed"), CASES)
def test_damage(profile: Path, tmp_path: Path, file: str, damage: Damage, seed: int) -> None:
    path = profile / file
    whole = path.read_bytes()
    damaged = damage(whole, Random(seed))
    path.write_bytes(damaged)
    try:
        done = run(profile, tmp_path / "report")
    finally:
        path.write_bytes(whole)
    assert done.code == 0, "one damaged file leaves the others"
    result = done.result
    assert {"report.html", "report.md"} <= {written.name for written in (tmp_path / "report").iterdir()}
    for step in result.ledger:
        assert step.wall_ns < 86_400 * 10**9, "an absurd time stretched a step"
    if any(file.endswith(input_.name) and not input_.bytes for input_ in result.inputs[0].files):
        assert f"{path.name} is empty" in told(result)


@pytest.mark.parametrize("file", [KERNELS, TRACE])
@pytest.mark.parametrize("damage", HARMLESS, ids=lambda damage: damage.__name__)
def test_what_does_no_harm_changes_no_number(
    profile: Path, clean: RunResult, tmp_path: Path, file: str, damage: Damage
) -> None:
    if damage not in BY_ENDING[Path(file).suffix]:
        pytest.skip("not of this kind of file")
    path = profile / file
    whole = path.read_bytes()
    path.write_bytes(damage(whole, Random(1)))
    try:
        same = run(profile, tmp_path / "report", "--format", "json").result
    finally:
        path.write_bytes(whole)
    books = [[(entry.path, entry.ns) for step in found.ledger for entry in step.entries] for found in (clean, same)]
    assert books[0] == books[1]
    assert [f.fingerprint for f in clean.findings] == [f.fingerprint for f in same.findings]


@settings(
    max_examples=settings.default.max_examples // 5 if PROFILE == "search" else 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    file=st.sampled_from([*MAIN, *SMALL]),
    place=st.floats(0, 1, exclude_max=True),
    cut_out=st.integers(0, 60),
    junk=st.one_of(st.binary(max_size=12), st.text(max_size=8).map(lambda text: text.encode("utf-8", "replace"))),
)
def test_any_change_of_bytes(profile: Path, tmp_path: Path, file: str, place: float, cut_out: int, junk: bytes) -> None:
    path = profile / file
    whole = path.read_bytes()
    start = int(place * len(whole))
    path.write_bytes(whole[:start] + junk + whole[start + cut_out :])
    try:
        assert run(profile, tmp_path / "report", *FEW, "--format", "json").code == 0
    finally:
        path.write_bytes(whole)
        shutil.rmtree(tmp_path / "report", ignore_errors=True)


def test_all_files_damaged_at_once_and_the_same_bytes_whatever_jobs_is(job: Path, tmp_path: Path) -> None:
    chance = Random(5)
    for path in sorted(file for file in job.rglob("*") if file.is_file()):
        kinds = [kind for kind in OF_BYTES if kind is not cut]
        path.write_bytes(chance.choice(kinds)(path.read_bytes(), chance))
    texts = []
    for jobs in (1, 2):
        done = advise("run", job, "--jobs", jobs, folder=tmp_path / str(jobs))
        assert done.code in (0, 3) and "Traceback" not in done.err, done.err
        if done.code == 0:
            data = json.loads(done.text("report.json"))
            del data["timings"]
            texts += [json.dumps(data), done.text("report.md"), done.text("report.html")]
        texts.append(done.err)
    assert texts[: len(texts) // 2] == texts[len(texts) // 2 :]
