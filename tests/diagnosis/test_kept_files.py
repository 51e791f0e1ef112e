from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnosis import kept_files, kept_truths


def test_an_answer_is_looked_for_once(tmp_path: Path) -> None:
    path, asked = tmp_path / "folder" / "answer", []

    def found() -> str:
        asked.append(1)
        return "an answer"

    assert [kept_files.kept(path, found) for _ in range(2)] == ["an answer"] * 2
    assert len(asked) == 1 and [file.name for file in path.parent.iterdir()] == ["answer"]


def test_another_source_has_another_version(tmp_path: Path) -> None:
    versions = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").write_text(f"which = {name!r}\n")
        (tmp_path / name / "notes.txt").write_text(name)
        versions.add(kept_files.version_of((tmp_path / name,)))
    assert len(versions) == 2


def test_a_truth_is_kept_to_the_last_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "FOLDER", tmp_path)
    first = kept_truths.kept("job", 0, lambda: (1 / 3, 0.0))
    assert first == kept_truths.kept("job", 0, lambda: (0.0,)) == [1 / 3, 0.0]
    assert kept_truths.kept("job", 1, lambda: (0.0,)) == [0.0]
