"""Nothing outside of the folder of a server is read, whatever a path or a link says."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from advisor_core.run.prepared import RunOptions
from advisor_core.serving.answers import AnswerError, Answers
from advisor_core.serving.root import OutsideError, Root


def silent(line: str) -> None:
    """No progress."""


def link(place: Path, target: Path, *, directory: bool = False) -> None:
    try:
        place.symlink_to(target, target_is_directory=directory)
    except OSError:  # Windows asks for a right
        pytest.skip("links cannot be made here")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "root-of-others").mkdir()
    (tmp_path / "secret.json").write_text("{}", encoding="utf-8")
    return Root(tmp_path / "root")


@pytest.mark.parametrize(
    "name",
    ["..", "../secret.json", "in/../../secret.json", "../root-of-others", "/", "\0", "x" * 5000 + "/../../../.."],
)
def test_what_lies_outside_is_refused(root: Root, name: str) -> None:
    with pytest.raises(OutsideError):
        root.path(name)
    with pytest.raises(AnswerError):
        Answers(root, RunOptions()).run(name, silent)


@pytest.mark.parametrize("name", ["", ".", "in", "in/../in", "missing", "missing/../in"])
def test_what_lies_inside_is_not(root: Root, name: str) -> None:
    assert root.path(name).resolve().is_relative_to(root.directory)
    assert root.path(str(root.directory / name)) == root.directory / name


def test_a_root_that_is_a_link_is_where_it_leads(root: Root, tmp_path: Path) -> None:
    link(tmp_path / "link", root.directory, directory=True)
    assert Root(tmp_path / "link").path("in") == root.directory / "in"


def test_links_that_lead_out_are_refused_and_others_followed(root: Root, tmp_path: Path) -> None:
    inside = root.directory / "in"
    (inside / "kernels.csv").write_text("a", encoding="utf-8")
    (root.directory / "other").mkdir()
    link(inside / "sideways", root.directory / "other", directory=True)
    link(inside / "back", inside, directory=True)  # a circle ends
    (found,) = root.stamp([inside])
    assert found[0].endswith("kernels.csv") and found[1] == 1
    link(root.directory / "other" / "out", tmp_path / "secret.json")
    with pytest.raises(OutsideError, match="out is or leads outside"):
        root.stamp([inside])
    link(root.directory / "direct", tmp_path / "root-of-others", directory=True)
    with pytest.raises(OutsideError):
        root.path("direct/anything")


def test_a_stamp_changes_with_a_file(root: Root) -> None:
    file = root.directory / "in" / "kernels.csv"
    file.write_text("a", encoding="utf-8")
    before = root.stamp([root.directory])
    assert before == root.stamp([root.directory])
    os.utime(file, ns=(0, 1))
    assert root.stamp([root.directory]) != before


def test_a_profile_with_a_link_out_of_the_root_is_refused(advisor_sample: Path, tmp_path: Path) -> None:
    shutil.copytree(advisor_sample, tmp_path / "root" / "profile")
    output = next(tmp_path.rglob("kernel_details.csv"))
    kept = tmp_path / "kept.csv"
    shutil.move(output, kept)
    link(output, kept)
    with pytest.raises(AnswerError, match=r"kernel_details\.csv is or leads outside"):
        Answers(Root(tmp_path / "root"), RunOptions()).run("profile", silent)


def test_what_lies_above_a_part_of_a_profile_is_refused(advisor_sample: Path) -> None:
    """Loaders look above a part of a profile; a root within a profile has no whole one."""
    part = next(advisor_sample.rglob("kernel_details.csv")).parent
    with pytest.raises(AnswerError, match="outside"):
        Answers(Root(part), RunOptions()).run(".", silent)
