"""The files at a URL, and the signs of their contents."""

from __future__ import annotations

import importlib
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.remote import listing
from advisor_core.remote.errors import DriverError, RemoteError
from advisor_core.remote.file_system import file_system
from advisor_core.remote.listing import listed
from advisor_core.remote.opened import opened
from advisor_core.remote.signs import TICK_NS, is_sign, sign_of, time_of
from advisor_core.remote.url import Url, is_url
from tests.remote.store import Shelf

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()
HOUR_AGO = NOW - 3600


def test_names_that_lead_elsewhere_are_no_files_here(shelf: type[Shelf], tmp_path: Path, cache: Path) -> None:
    names = ("../../../out.json", "a//b.json", "a/./b.json", "a\\b.json", "x/../../y.json", "a?b=c", "nul\0.json")
    shelf.files |= {f"job/{name}": b"{}" for name in (*names, "a/b.json", "a/b.json/c.json")}
    with opened([Url("shelf://job")], 1 << 30) as (path,):
        found = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    assert found == {"a/b.json/c.json"}
    assert not list(tmp_path.rglob("out.json")) and not list(tmp_path.rglob("y.json"))


def test_too_much_is_told(shelf: type[Shelf], monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.files |= {f"job/{number}/x/y.json": b"{}" for number in range(4)}
    monkeypatch.setattr(listing, "_MOST_DIRECTORIES", 4)
    with pytest.raises(RemoteError, match="shelf://job: more than 4 directories"):
        listed(file_system(Url("shelf://job")))


def test_what_lies_deep_and_raw_data_are_not_listed(shelf: type[Shelf]) -> None:
    below = ["/".join("abcdefgh"[:depth]) + "/x" for depth in range(1, 9)]
    raw = ["PROF_1/device_0/data/x", "PROF_1/host/sqlite/x", "PROF_1/device_0/info.json.0", "data/x"]
    shelf.files |= {f"job/{name}": b"" for name in (*below, "a/b/c/d/e/f/g/h/i/x", *raw)}
    found = listed(file_system(Url("shelf://job")))
    assert set(found.files) == {*below, *raw[2:]} and "PROF_1/host/sqlite" in found.directories


def test_a_size_that_a_directory_does_not_tell_is_asked_of_the_file(
    shelf: type[Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    ls = Shelf.ls
    shelf.files |= {"job/page/a": b"12", "job/page/b": b"3"}
    monkeypatch.setattr(Shelf, "ls", lambda self, path, **more: [{**one, "size": None} for one in ls(self, path)])
    found = listed(file_system(Url("shelf://job")))
    assert {name: file.bytes for name, file in found.files.items()} == {"page/a": 2, "page/b": 1}
    asked: list[str] = []

    def info(self: Shelf, path: str, **more: object) -> dict[str, object]:
        asked.append(path)
        return {"name": path, "type": "file"}

    monkeypatch.setattr(Shelf, "info", info)
    with pytest.raises(RemoteError, match="shelf://job: it is not told how large it is"):
        listed(file_system(Url("shelf://job")))
    assert asked == ["job"]


@pytest.mark.parametrize(
    ("entry", "sign"),
    [
        ({"ETag": '"ab"', "LastModified": NOW}, "etag ab"),
        ({"etag": 'W/"ab"'}, "etag ab"),
        ({"md5Hash": "q==", "generation": 3}, "md5hash q=="),
        ({"size": 3, "name": "x"}, None),
        ({"ino": 3}, None),
        ({"mtime": HOUR_AGO, "ino": 3, "created": HOUR_AGO}, f"created {HOUR_AGO!r} ino 3.0 mtime {HOUR_AGO!r}"),
        ({"mtime": NOW - 1}, None),
        ({"LastModified": datetime.fromtimestamp(HOUR_AGO, UTC)}, f"lastmodified {HOUR_AGO!r}"),
        ({"Last-Modified": "Mon, 23 Nov 2026 11:00:00 GMT"}, f"last-modified {HOUR_AGO!r}"),
        ({"Last-Modified": "Mon, 23 Nov 2026 12:00:00 GMT"}, None),
        ({"updated": "2026-11-23T11:00:00+00:00"}, f"updated {HOUR_AGO!r}"),
        ({"modify": "20261123"}, "modify 1795392000.0"),
        ({"mtime": "of no form"}, "mtime 'of no form'"),
    ],
)
def test_signs(entry: dict[str, object], sign: str | None) -> None:
    assert sign_of(entry, NOW) == sign
    assert is_sign(time_of(entry, NOW)) is (sign is not None)


@given(st.integers(0), st.integers(0))
def test_contents_of_other_digests_have_other_times(one: int, other: int) -> None:
    times = [time_of({"md5": f"{digest:x}"}, NOW) for digest in (one, one, other)]
    assert times[0] == times[1] and all(time % TICK_NS == 0 and is_sign(time) for time in times)
    assert (times[0] == times[2]) is (one == other)


def test_urls() -> None:
    assert all(map(is_url, ("s3://b/j", "zip::s3://b/j.zip", "https://h/x")))
    assert not any(map(is_url, ("job", "C:\\job", "c:/job", "a/b://c", "/s3://b", "host:job")))
    url = Url("https://user:secret@host:80/a/job/trace.json.gz?X-Amz-Signature=secret")
    assert str(url) == "https://host:80/a/job/trace.json.gz"
    assert url.parts == ("host_80", "a", "job", "trace.json.gz")
    assert url.hidden(f"GET {url.text} failed") == f"GET {url} failed"
    signed = Url("https://host/a?X-Amz-Credential=KEY%2F1&X-Amz-Signature=secret")
    told = "403, message='Forbidden', url='https://host/a{}'"
    assert signed.hidden(told.format("?X-Amz-Credential=KEY/1&X-Amz-Signature=secret")) == told.format("")
    assert Url("ftp://me:a%62c@host/x").hidden("no ftp://me:abc@host/x/y") == "no ftp://host/x/y"
    assert Url("s3://bucket/job/").hidden("no s3://bucket/job/x") == "no s3://bucket/job/x"
    assert Url("zip://job::s3://key:secret@bucket/x.zip").parts == ("job",)
    assert Url("s3://bucket/../..").parts == ("bucket",)
    assert Url("zip::s3://bucket/x.zip").parts[-1] == "x.zip" and Url("memory://").parts == ("memory",)


def test_what_cannot_be_reached_is_named(shelf: type[Shelf], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, **more: object) -> None:
        raise PermissionError("Forbidden: shelf://user:secret@job")

    for url, error, told in (
        ("shelf://nothing", RemoteError, "^shelf://nothing: no such file or directory$"),
        ("strange://x", RemoteError, "^strange://x: ValueError: Protocol not known: strange$"),
    ):
        with pytest.raises(error, match=told), opened([Url(url)], 0):
            pass
    shelf.files["user:secret@job/x"] = b""
    monkeypatch.setattr(Shelf, "ls", lambda self, path, **more: refuse(path))
    with pytest.raises(RemoteError, match=r"^shelf://job: no permission \(Forbidden: shelf://job\)$"):
        listed(file_system(Url("shelf://user:secret@job")))


def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    known_implementations = importlib.import_module("fsspec.registry").known_implementations
    monkeypatch.setitem(known_implementations, "far", {"class": "nowhere_fs.Far", "err": "Install nowhere-fs"})
    with pytest.raises(DriverError, match=r"^far://x: .* not installed \(Install nowhere-fs\)$"):
        file_system(Url("far://x"))
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(DriverError, match=r'pip install "npu-advisor\[remote\]"'):
        file_system(Url("far://x"))
