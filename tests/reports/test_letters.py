"""Letters of texts: what cannot be seen, white space, the room that a text takes."""

from __future__ import annotations

import re
import sys

import pytest

from reports.charts.svg import fit, most_letters, width_of
from reports.html_pieces import cells, code, words
from reports.labels import one_line, shorten, visible
from reports.prose import joined

INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def test_each_letter_is_shown_as_a_search_would_have_it() -> None:
    """Texts that can be printed as they are take a shorter way."""
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        shown = INVISIBLE.sub("\ufffd", letter)
        assert visible(letter) == shown, hex(number)
        assert one_line(f"a{letter}b") == " ".join(f"a{' ' if letter == chr(9) else shown}b".split()), hex(number)


@pytest.mark.parametrize("text", ["", " ", "  a", "a  b", "a b ", "a\tb", "a\r\nb", "a\u3000b", "\u00a0a", "plain"])
def test_white_space_becomes_one_space(text: str) -> None:
    assert one_line(text) == " ".join(visible(text.replace("\t", " ")).split())


@pytest.mark.parametrize("most", range(12))
@pytest.mark.parametrize("fitting", range(12))
def test_the_most_letters_that_fit_are_found_as_by_taking_one_after_the_other(most: int, fitting: int) -> None:
    length = most
    while length > 3 and length > fitting:
        length -= 1
    assert most_letters(3, most, lambda letters: letters <= fitting) == length


@pytest.mark.parametrize("text", ["aclnnMatMulV3_0_MatMulV3", "矩阵乘法 aclnn 算子名称很长", "短", ""])
def test_a_text_is_shortened_only_as_far_as_it_must_be(text: str) -> None:
    for width in range(0, 320, 7):
        length = len(text)
        while length > 3 and width_of(shorten(text, length)) > width:
            length -= 1
        assert fit(text, width) == shorten(text, length)


def test_what_is_written_without_a_template_is_escaped() -> None:
    hostile = "<img src=x> & \"'"
    escaped = "&lt;img src=x&gt; &amp; &#34;&#39;"
    assert words(hostile, "") == escaped
    assert words(hostile, "strong") == f"<b>{escaped}</b>"
    assert words("7", hostile) == f'<span class="{escaped}">7</span>'
    assert words("7", "value") == "7"
    assert words("12 ms", "") == "12\u00a0ms"
    assert code(hostile, "") == f"<code>{escaped}</code>"
    assert code(hostile, "chip") == f'<code class="chip">{escaped}</code>'
    assert code(hostile, "cell") == escaped
    row = [words("<a>", ""), words("<b>", "")]
    assert cells(row, ["", "n x"], headed=False) == '<td>&lt;a&gt;</td><td class="n x">&lt;b&gt;</td>'
    assert (
        cells(row, ["", hostile], headed=True) == f'<th scope="row">&lt;a&gt;</th><td class="{escaped}">&lt;b&gt;</td>'
    )
    assert joined(row) == "&lt;a&gt;&lt;b&gt;"
