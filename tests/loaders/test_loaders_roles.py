"""Jobs of reinforcement learning that profile each role by itself: ``save_path/<role>/*_ascend_pt``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from advisor_core.contracts.profile import InputError, RankInput, RoleError
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.loaders.msprof.loader import MsprofLoader
from advisor_core.loaders.roles import role_of
from advisor_core.plugins.host import load_host
from tests.robustness.command import OUTPUT, advise, run

MARKS = load_host().phase_marks.third_parties_first()
ROLES = ("actor_compute_log_prob", "actor_update", "rollout_generate")
KERNELS = "Name,Start Time(us),Duration(us)\nk,1.000\t,2\n"


def make(directory: Path, rank: int | None) -> Path:
    (directory / OUTPUT).mkdir(parents=True)
    (directory / OUTPUT / "kernel_details.csv").write_text(KERNELS)
    if rank is not None:
        (directory / f"profiler_info_{rank}.json").write_text("{}")
    return directory


def found(*paths: Path, role: str | None = None, roles: Sequence[str] = ()) -> list[RankInput]:
    return discover(
        [AscendPytorchLoader(), MsprofLoader()], *paths, roles=roles if role is None else [role], marks=MARKS
    )


def lanes(sources: Sequence[RankInput]) -> list[tuple[str, int]]:
    return [(source.role, source.rank) for source in sources]


@pytest.fixture
def save_path(tmp_path: Path) -> Path:
    """Three roles of two ranks, as verl names the directories."""
    for role in ROLES:
        for rank in (0, 1):
            make(tmp_path / "save" / role / f"host_{rank}_20260101_ascend_pt", rank)
    return tmp_path / "save"


def test_roles_are_roles_of_one_job(save_path: Path) -> None:
    assert lanes(found(save_path)) == [(role, rank) for role in ROLES for rank in (0, 1)]
    assert all(source.root == save_path and not source.older for source in found(save_path))


def test_several_roles_may_be_chosen(save_path: Path) -> None:
    chosen = found(save_path, roles=["rollout_generate/", "actor_update", "actor_update"])
    assert lanes(chosen) == [(role, rank) for role in ROLES[1:] for rank in (0, 1)]
    with pytest.raises(RoleError, match="critic"):
        found(save_path, roles=["actor_update", "critic"])


def test_roles_that_share_no_rank_are_roles_by_their_names(tmp_path: Path) -> None:
    """Training and rollout on devices of their own."""
    make(tmp_path / "actor_update" / "a_ascend_pt", 0)
    make(tmp_path / "rollout_generate" / "a_ascend_pt", 1)
    assert lanes(found(tmp_path)) == [("actor_update", 0), ("rollout_generate", 1)]


def test_roles_of_names_of_their_own_are_roles_where_they_repeat_a_rank(tmp_path: Path) -> None:
    for role in ("teacher", "student"):
        make(tmp_path / role / "a_ascend_pt", 0)
    make(tmp_path / "student" / "b_ascend_pt", 1)
    assert lanes(found(tmp_path)) == [("student", 0), ("student", 1), ("teacher", 0)]


def test_a_profile_beside_the_roles_is_a_role_of_the_name_of_the_path(save_path: Path) -> None:
    make(save_path / "alone_ascend_pt", 0)
    assert lanes(found(save_path))[-1] == ("save", 0)


@pytest.mark.parametrize("role", [*ROLES, "actor_update/"])
def test_a_role_is_a_job(save_path: Path, role: str) -> None:
    sources = found(save_path, role=role)
    name = role.rstrip("/")
    assert [(s.rank, s.directory.parent, s.root, role_of(s)) for s in sources] == [
        (rank, save_path / name, save_path, name) for rank in (0, 1)
    ]
    loaded = AscendPytorchLoader().load(sources[1])
    assert loaded.path == f"{name}/host_1_20260101_ascend_pt"
    assert (save_path / loaded.tables["kernels"].source.file).is_file()
    assert [(s.rank, s.directory) for s in found(save_path / name)] == [(s.rank, s.directory) for s in sources]


@pytest.mark.parametrize("role", ["update_actor", "", ".", "..", "../save/actor_update", "/", "a\0b"])
def test_a_role_that_is_not_there(save_path: Path, role: str) -> None:
    with pytest.raises(RoleError) as said:
        found(save_path, role=role)
    assert all(name in str(said.value) for name in ROLES)
    profile = save_path / "actor_update" / "host_0_20260101_ascend_pt"
    for path, role in ((profile, profile.name), (profile, OUTPUT), (profile.parent, profile.name)):
        with pytest.raises(RoleError, match="no profile lies in a directory below"):
            found(path, role=role)


def test_of_several_iterations_the_last_is_read_and_names_the_others(tmp_path: Path) -> None:
    for role in ("2/e2e", "4/e2e", "10/e2e"):
        make(tmp_path / role / "a_ascend_pt", 0)
    (source,) = found(tmp_path)
    assert source.directory == tmp_path / "10" / "e2e" / "a_ascend_pt" and source.role == ""
    assert source.older == (tmp_path / "4" / "e2e" / "a_ascend_pt", tmp_path / "2" / "e2e" / "a_ascend_pt")
    (source,) = found(tmp_path, role="4/e2e")
    assert source.directory == tmp_path / "4" / "e2e" / "a_ascend_pt" and source.older == ()
    with pytest.raises(RoleError, match="10/e2e, 2/e2e, 4/e2e"):
        found(tmp_path, role="4")


def test_iterations_with_roles(tmp_path: Path) -> None:
    for step in ("2", "4"):
        for role in ROLES[1:]:
            make(tmp_path / step / role / "a_ascend_pt", 0)
    sources = found(tmp_path)
    assert lanes(sources) == [(role, 0) for role in ROLES[1:]]
    assert [source.directory.parts[-3] for source in sources] == ["4", "4"]
    assert [[path.parts[-3] for path in source.older] for source in sources] == [["2"], ["2"]]


def test_nodes_with_roles(tmp_path: Path) -> None:
    for rank, node in enumerate(("node0", "node1")):
        for role in ROLES[1:]:
            make(tmp_path / node / role / "a_ascend_pt", rank)
    assert lanes(found(tmp_path)) == [(role, rank) for role in ROLES[1:] for rank in (0, 1)]


def test_one_dataset_over_all_roles_needs_no_role(tmp_path: Path) -> None:
    for rank in (0, 1):
        make(tmp_path / "e2e" / f"{rank}_ascend_pt", rank)
    assert [s.rank for s in found(tmp_path)] == [s.rank for s in found(tmp_path, role="e2e")] == [0, 1]


def test_directories_of_nodes_are_one_job(tmp_path: Path) -> None:
    for rank in (0, 1):
        make(tmp_path / f"node{rank}" / "a_ascend_pt", rank)
    assert [s.rank for s in found(tmp_path)] == [0, 1]


def test_a_role_over_several_nodes(save_path: Path, tmp_path: Path) -> None:
    for role in ROLES[:2]:
        make(tmp_path / "other" / role / "a_ascend_pt", 2)
    assert [s.rank for s in found(save_path, tmp_path / "other", role="actor_update")] == [0, 1, 2]
    assert [s.rank for s in found(save_path, tmp_path / "other", role="rollout_generate")] == [0, 1]


def test_ranks_that_no_profile_records_are_counted_within_the_role(tmp_path: Path) -> None:
    for role in ROLES:
        make(tmp_path / role / "a_ascend_pt", None)
    assert [s.rank for s in found(tmp_path, role="rollout_generate")] == [0]
    assert lanes(found(tmp_path)) == [(role, 0) for role in ROLES]


def test_the_newest_of_several_recordings_of_a_rank_is_read(save_path: Path) -> None:
    newer = make(save_path / "actor_update" / "host_9_20260102_ascend_pt", 0)
    sources = [s for s in found(save_path) if s.role == "actor_update"]
    assert [s.rank for s in sources] == [0, 1] and sources[0].directory == newer
    assert sources[0].older == (save_path / "actor_update" / "host_0_20260101_ascend_pt",) and not sources[1].older
    for path, role in ((save_path, "actor_update"), (save_path / "actor_update", None)):
        (first, _) = found(path, role=role)
        assert first.directory == newer and len(first.older) == 1


def test_recordings_that_do_not_say_when_they_were_taken_are_not_guessed_at(save_path: Path) -> None:
    make(save_path / "actor_update" / "again_ascend_pt", 0)
    with pytest.raises(InputError, match=r"rank 0 is claimed by two .*again.*host_0_20260101"):
        found(save_path)
    assert len(found(save_path, role="rollout_generate")) == 2


def test_a_newer_recording_that_cannot_be_used_does_not_hide_the_older(save_path: Path) -> None:
    newer = make(save_path / "actor_update" / "host_0_20260102_ascend_pt", 0)
    shutil.rmtree(newer / OUTPUT)
    sources = found(save_path, role="actor_update")
    assert [(s.directory.name, bool(s.problem)) for s in sources] == [
        ("host_0_20260101_ascend_pt", False),
        ("host_1_20260101_ascend_pt", False),
        ("host_0_20260102_ascend_pt", True),
    ]


def test_a_role_that_was_not_analysed_is_still_one(save_path: Path) -> None:
    """vLLM leaves its profiles for an analysis offline."""
    for rank in (0, 1):
        shutil.rmtree(save_path / "rollout_generate" / f"host_{rank}_20260101_ascend_pt" / OUTPUT)
    sources = found(save_path)
    assert sorted(lanes(sources)) == [(role, rank) for role in ROLES for rank in (0, 1)]
    assert {s.role for s in sources if s.problem} == {"rollout_generate"}
    with pytest.raises(InputError, match="analyse"):
        found(save_path, role="rollout_generate")
    assert [s.problem for s in found(save_path, role="actor_update")] == ["", ""]


FEW = ("--select", "HD,CO,RL,DQ")
"""Rules of ranks, jobs and phases: what is said of roles does not hang on which they are."""


@pytest.fixture
def recorded(short_job: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a role's directory from the first ranks of the embedded sample, cut down."""

    def write(role: str, ranks: int = 1) -> Path:
        for profile in sorted(short_job.iterdir())[:ranks]:
            shutil.copytree(profile, tmp_path / "save" / role / profile.name)
        return tmp_path / "save"

    return write


def test_the_report_of_a_role(recorded: Callable[..., Path], tmp_path: Path) -> None:
    for role in ROLES[1:]:
        save_path = recorded(role)
    wrong = run(save_path, tmp_path / "wrong", *FEW, "--role", "critic")
    assert wrong.code == 2 and "'critic'" in wrong.err and "actor_update, rollout_generate" in wrong.err

    for lang, label in (("en", "Role"), ("zh", "角色")):
        done = run(save_path, tmp_path / lang, *FEW, "--role", "actor_update", "--lang", lang)
        assert done.code == 0 and done.result.profile.role == "actor_update"
        assert {source.path.split("/")[0] for source in done.result.inputs} == {"actor_update"}
        assert label in done.out and "actor_update" in done.out
        summary = done.text("report.md").split("##")[0]
        assert label in summary and r"actor\_update" in summary
        assert "<dd>actor_update</dd>" in done.text("report.html")

    alone = run(save_path / "actor_update", tmp_path / "alone", *FEW)
    assert alone.result.profile.role is None and "Role" not in alone.text("report.md").split("##")[0]
    ledgers = [json.loads((tmp_path / name / "report.json").read_bytes())["ledger"] for name in ("en", "alone")]
    chosen, by_path = (json.dumps(ledger) for ledger in ledgers)
    assert '"actor_update/node-1' in chosen and chosen.replace('"actor_update/', '"') == by_path


def test_all_roles_in_one_report(recorded: Callable[..., Path], tmp_path: Path) -> None:
    """What the report says of a role is what a report of that role alone says."""
    recorded(ROLES[1], ranks=2)
    save_path = recorded(ROLES[2])
    newest = sorted((save_path / "actor_update").iterdir())[0]
    older = newest.with_name(f"{newest.name.rsplit('_', 3)[0]}_19990101000000000_ascend_pt")
    shutil.copytree(newest, older)
    done = run(save_path, tmp_path / "all", *FEW)
    assert done.code == 0 and older.name in done.err
    whole = done.result
    assert set(whole.profile.roles) == set(ROLES[1:]) and whole.profile.kind == "rl" and whole.profile.role is None
    assert {source.path.split("/")[0]: source.role for source in whole.inputs} == {role: role for role in ROLES[1:]}
    assert len({finding.fingerprint for finding in whole.findings}) == len(whole.findings) > 0
    known = {finding.fingerprint: finding for finding in whole.findings}
    for finding in whole.findings:
        assert {known[other].role for other in (*finding.explains, *finding.explained_by)} <= {finding.role}
    assert not any("none has the name" in d.message.en for d in whole.diagnostics)
    (said,) = [d for d in whole.diagnostics if older.name in d.message.en]
    assert said.role == "actor_update" and said.severity == "warning"
    for role in ROLES[1:]:
        alone = run(save_path, tmp_path / role, *FEW, "--role", role, "--format", "json").result
        own = [step.model_copy(update={"role": None}) for step in whole.ledger if step.role == role]
        assert own == alone.ledger
        roles = [rule.model_copy(update={"role": None}) for rule in whole.rules if rule.role == role]
        about_phases = ("RL",)  # they need to know that it is a role
        assert [r for r in roles if not r.rule.startswith(about_phases)] == [
            r for r in alone.rules if not r.rule.startswith(about_phases)
        ]
        titles = [f.title.en for f in whole.findings if f.role == role and not f.rule.startswith(about_phases)]
        # Rules about phases claim time, too: the others keep what they say, not their order.
        assert sorted(titles) == sorted(f.title.en for f in alone.findings)
        for step in alone.ledger:
            (time,) = [t for t in whole.phases if (t.phase, t.rank, t.step) == (role, step.rank, step.step)]
            assert time.wall_ns == step.wall_ns == sum(time.entries.values())
    for name in ("report.html", "report.md"):
        text = done.text(name)
        assert "Phases" in text and all(text.count(role.replace("_", r"\_")) or role in text for role in ROLES[1:])
    explained = advise("explain", tmp_path / "all" / "report.json", whole.findings[0].fingerprint)
    assert explained.code == 0 and f"role {whole.findings[0].role}" in explained.out
    two = run(save_path, tmp_path / "two", *FEW, "--role", ROLES[1], "--role", ROLES[2], "--format", "json")
    assert [f.fingerprint for f in two.result.findings] == [f.fingerprint for f in whole.findings]


def test_directories_of_two_jobs_are_not_taken_for_roles_in_silence(
    recorded: Callable[..., Path], tmp_path: Path
) -> None:
    for job in ("before", "after"):
        save_path = recorded(job)
    done = run(save_path, tmp_path / "out", *FEW)
    whole = done.result
    (said,) = [d for d in whole.diagnostics if "none has the name" in d.message.en]
    assert said.severity == "warning" and "after, before" in said.message.en and "after、before" in said.message.zh
    assert set(whole.profile.roles) == {"before", "after"}
    alone = run(save_path / "before", tmp_path / "alone", *FEW, "--format", "json").result
    assert whole.profile.kind == alone.profile.kind != "rl"
    assert "roles of one job" in done.text("report.md")


def test_a_role_that_cannot_be_read_does_not_stop_the_others(recorded: Callable[..., Path], tmp_path: Path) -> None:
    for role in ROLES[1:]:
        save_path = recorded(role)
    for profile in (save_path / "rollout_generate").iterdir():
        shutil.rmtree(profile / OUTPUT)
    done = run(save_path, tmp_path / "out", *FEW)
    assert done.code == 0
    assert set(done.result.profile.roles) == {"actor_update"}
    errors = [d for d in done.result.diagnostics if d.severity == "error"]
    assert errors and {d.role for d in errors} == {"rollout_generate"}


def test_a_mark_of_the_user_needs_both_sides(tmp_path: Path) -> None:
    for wrong in ("rollout", "=rollout", "my_generate="):
        done = advise("run", tmp_path / "in", "--phase-mark", wrong, folder=tmp_path / "out")
        assert done.code == 2 and "TEXT=PHASE" in done.err
