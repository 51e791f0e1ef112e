"""Names from a profile are somebody else's text: whatever they hold, they come out as text in every format."""

from __future__ import annotations

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.robustness.command import FEW, KERNELS, OUTPUT, TRACE, Done, advise, read_rows, run, write_rows

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "' onmouseover='alert(3)' x='",
    '"><svg/onload=alert(4)>',
    '=HYPERLINK("http://evil.example","click")',
    "+cmd|' /C calc'!A0",
    "[click](javascript:alert(5))",
    "![x](https://evil.example/x.png)",
    "{{7*7}}{% raw %}${7*7}#{7*7}",
    "a | b | c\n| --- | --- |\n# heading",
    "``` `` ` \\` ~~~",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07\x9b1m",
    "left\u202eright\u2066\u200b\ufeff",
    "@everyone #1 https://evil.example www.evil.example",
    "&lt;b&gt; &#60;script&#62; %3Cscript%3E",
    "half \ud800 pair \x00 nul",
    "**bold** _it_ <!-- comment --> <b>x</b>",
    "$(id) `id` ; rm -rf / #",
)
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
ALLOWED_TAGS_WITH_URL = {"a": "href"}


def _spoil(rank: Path) -> None:
    """Put hostile text wherever an exporter writes a name."""
    turn = iter(range(10**9))

    def name(old: str = "", *, whole: bool = True) -> str:
        text = old + HOSTILE[next(turn) % len(HOSTILE)]
        return text if whole else text.replace("\ud800", "").replace("\x00", "")

    for file, columns in (
        ("kernel_details.csv", ("Name", "Type", "OP State", "Input Data Types", "Input Formats")),
        ("operator_details.csv", ("Name", "Call Stack")),
        ("op_statistic.csv", ("OP Type",)),
        ("api_statistic.csv", ("API Name", "Level")),
        ("operator_memory.csv", ("Name",)),
        ("memory_record.csv", ("Component",)),
    ):
        rows = read_rows(rank / OUTPUT / file)
        places = [rows[0].index(column) for column in columns if column in rows[0]]
        for number, row in enumerate(rows[1:]):
            for place in places:
                if number % 3 == 0 or columns[0] != "Name":  # the others keep what rules look for
                    row[place] = name(row[place], whole=False)
        write_rows(rank / OUTPUT / file, rows)
    events = json.loads((rank / TRACE).read_text(encoding="utf-8"))
    for number, event in enumerate(events):
        if event["ph"] == "M":
            continue
        if number % 3 == 0:
            event["name"] = name(event["name"])
        for key, value in event.get("args", {}).items():
            if isinstance(value, str) and key in ("Call stack", "Task Type", "link type", "Input Dims"):
                event["args"][key] = name(value)
    (rank / TRACE).write_text(json.dumps(events), encoding="utf-8")
    for file in ("communication.json", "communication_matrix.json"):
        text = (rank / OUTPUT / file).read_text(encoding="utf-8")
        text = text.replace("HCCS", json.dumps(name())[1:-1]).replace("hcom_", json.dumps(name())[1:-1] + "hcom_")
        (rank / OUTPUT / file).write_text(text, encoding="utf-8")
    info = json.loads((rank / "profiler_info_0.json").read_text(encoding="utf-8"))
    info |= {"torch_npu_version": name(whole=False), "cann_version": name(whole=False)}
    info["config"]["experimental_config"][name(whole=False)] = name(whole=False)
    (rank / "profiler_info_0.json").write_text(json.dumps(info), encoding="utf-8")
    metadata = json.loads((rank / "profiler_metadata.json").read_text(encoding="utf-8"))
    metadata["ENV_VARIABLES"] = {
        **metadata["ENV_VARIABLES"],
        **{text: name(whole=False) for text in HOSTILE if "\ud800" not in text},
    }
    (rank / "profiler_metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


class _Page(HTMLParser):
    """Every element with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def hostile(short_job: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """The same report in both languages, and the one of the profile before it was spoiled."""
    folder = tmp_path_factory.mktemp("hostile")
    first = sorted(short_job.iterdir())[0]
    # a name cannot hold a slash, so that the closing tag is a folder in a folder
    rank = folder / "<script>alert(0)</script>=HYPERLINK(0)_ascend_pt"
    shutil.copytree(first, rank)
    _spoil(rank)
    return {
        "en": run(folder / "<script>alert(0)<", folder / "en"),
        "zh": run(folder / "<script>alert(0)<", folder / "zh", "--lang", "zh"),
        "clean": run(first, folder / "clean"),
    }


def test_the_names_do_reach_the_report(hostile: dict[str, Done]) -> None:
    """Else the other tests would prove nothing: findings hold hostile text, and JSON keeps it as it was."""
    done = hostile["en"]
    assert done.code == 0, done.err
    found = json.dumps([finding.model_dump(mode="json") for finding in done.result.findings], ensure_ascii=False)
    reached = [text for text in HOSTILE if json.dumps(text.split("\n")[0][:14], ensure_ascii=False)[1:-1] in found]
    assert len(reached) >= len(HOSTILE) // 2, reached
    assert len(done.result.findings) >= len(hostile["clean"].result.findings) // 2
    assert "<script>alert(1)</script>" in " ".join(done.result.environment.variables)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_html_holds_no_element_of_a_name(hostile: dict[str, Done], lang: str) -> None:
    text = hostile[lang].text("report.html")
    page, clean = _Page(text), _Page(hostile["clean"].text("report.html"))
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in clean.elements}
    assert {key for _, attributes in page.elements for key in attributes} <= {
        key for _, attributes in clean.elements for key in attributes
    }
    for tag, attributes in page.elements:
        assert tag not in ("script", "img", "iframe", "object", "embed", "form", "base"), tag
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("href", "src", "xlink:href", "action"):
                assert (value or "").startswith(("#", "https://")) and "evil" not in (value or ""), value
            if key == "style":
                assert "url(" not in (value or "") and "expression" not in (value or "")
    words = "".join(page.words)
    assert "<script>alert(1)</script>" in words and "{{7*7}}" in words
    assert not STEERING.search(text) and "\ud800" not in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_markdown_holds_no_markup_of_a_name(hostile: dict[str, Done], lang: str) -> None:
    text = hostile[lang].text("report.md")
    clean = hostile["clean"].text("report.md")
    tokens = [
        token
        for block in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
        for token in (block, *(block.children or []))
    ]
    kinds = {token.type for token in tokens}
    assert not {"html_inline", "image", "s_open"} & kinds
    # What is folded is the only HTML of a report, and its summary holds no tag.
    blocks = {token.content.strip() for token in tokens if token.type == "html_block"}
    assert all(re.fullmatch(r"</details>|<details>\s<summary>[^<>]*</summary>", block) for block in blocks)
    targets = [str(token.attrs.get("href", "")) for token in tokens if token.type == "link_open"]
    assert targets and all(target.startswith(("https://", "#")) and "evil" not in target for target in targets)
    headings = {line for line in text.splitlines() if line.startswith("#")}
    assert not [line for line in headings if any(word in line for word in ("heading", "script", "HYPERLINK"))]
    assert len(headings) < 3 * len([line for line in clean.splitlines() if line.startswith("#")])
    width = 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not width or not cells or cells == width, line
        width = cells
        for cell in re.split(r"(?<!\\)\|", line)[1:-1] if cells else ():
            assert not cell.strip().startswith(("=", "+cmd")), "a spreadsheet would take it for a formula"
    outside_code = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "@everyone" not in outside_code and not re.search(r"(?<!\\)(https?://|www\.)evil", outside_code)
    assert not STEERING.search(text)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_terminal_gets_nothing_that_steers_it(hostile: dict[str, Done], lang: str) -> None:
    done = hostile[lang]
    for text in (done.out, done.err):
        assert all(character.isprintable() or character == "\n" for character in text)
    assert len(done.out.splitlines()) < 30


def test_json_can_be_read_by_others(hostile: dict[str, Done]) -> None:
    """It is data, so names stay as they are; but half of a surrogate pair is nothing that UTF-8 can say."""
    raw = (hostile["en"].folder / "report.json").read_bytes()
    assert raw.decode("utf-8") and b"\\ud800" not in raw and b"\x1b" not in raw


def test_explain_prints_what_a_terminal_can_take(hostile: dict[str, Done]) -> None:
    done = hostile["en"]
    for finding in done.result.findings:
        said = advise("explain", done.folder / "report.json", finding.fingerprint)
        assert said.code == 0 and all(c.isprintable() or c == "\n" for c in said.out), said.out
    said = advise("explain", done.folder / "report.json", "idle")
    assert all(c.isprintable() or c == "\n" for c in said.out + said.err)


@pytest.mark.parametrize(
    "name",
    [
        b"\x1b[2J_ascend_pt",
        b"caf\xe9_ascend_pt",
        pytest.param("ab\u202ecd_ascend_pt".encode(), marks=pytest.mark.search),
        pytest.param(b"a\nb_ascend_pt", marks=pytest.mark.search),
    ],
)
def test_names_of_files(short_job: Path, tmp_path: Path, name: bytes) -> None:
    job = tmp_path / "job"
    for rank in sorted(short_job.iterdir()):
        shutil.copytree(rank, job / rank.name)
    given = sorted(job.iterdir())[0]
    odd = Path(os.fsdecode(os.fsencode(job) + b"/" + name))
    given.rename(odd)
    (odd / KERNELS).write_bytes(b"")
    done = run(job, tmp_path / "report", *FEW)
    assert done.code == 0, done.err
    for text in (done.out, done.err, done.text("report.html"), done.text("report.md")):
        assert not STEERING.search(text)
    (odd / TRACE).write_bytes(b"")
    again = run(odd, tmp_path / "again", *FEW)
    assert not STEERING.search(again.out + again.err)
    missing = advise("run", tmp_path / os.fsdecode(name) / "nowhere")
    assert missing.code == 3 and not STEERING.search(missing.err)


def test_a_report_does_not_tell_where_it_was_made(job: Path, tmp_path: Path) -> None:
    """A report goes into a ticket. What the profile recorded (call stacks) stays, for that is evidence; where the
    profile and the rules lie on this machine does not."""
    rules = tmp_path / "secret-place" / "my.yaml"
    rules.parent.mkdir()
    rules.write_text('override: HD001\nparams:\n  idle_share: {value: 0.3, why: "ours is slower than most"}\n')
    for path in (sorted(job.iterdir())[1] / OUTPUT).iterdir():
        path.write_bytes(b"")
    done = run(job, tmp_path / "report", "--ruleset", rules)
    assert done.code == 0, done.err
    for name in ("report.json", "report.html", "report.md"):
        text = done.text(name)
        assert str(tmp_path) not in text and str(Path.home()) + "/" not in text, name
