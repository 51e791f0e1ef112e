"""Page of real cases: published threads about lost time, and the rules that would have named the cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from reference_pages.catalogue import Catalogue
from reference_pages.kinds import Sentence, Url
from reference_pages.markdown import ROOT, join, listing, source_link, table, to

FILE = ROOT / "docs" / "cases.yaml"
PAGE = "cases.md"

ANSWERS = {
    "yes": "a rule names the cause, and the numbers of the thread satisfy its condition at the default thresholds",
    "part": "a rule finds the lost time or lists the cause among others, or the thread lacks the deciding number",
    "no": "no rule says anything that leads to the cause",
}

STATUS = {
    "effect": "cause and fix stated, with a measured effect",
    "cause": "cause stated, the effect in part or not",
    "symptom": "symptom only",
}


class RealCase(BaseModel):
    """A thread and what the rules say to it. ``sources``: addresses by name. ``rules``: what each would say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    case: int
    sources: Annotated[dict[str, Url], Field(min_length=1)]
    shows: Sentence
    cause: Sentence
    effect: Sentence
    status: Literal["effect", "cause", "symptom"]
    answer: Literal["yes", "part", "no"]
    rules: dict[str, Sentence] = {}
    missing: Sentence | None = None
    risk: Sentence | None = None

    @model_validator(mode="after")
    def _answer_has_its_reasons(self) -> Self:
        if self.answer != "yes" and self.missing is None:
            raise ValueError(f"case {self.case}: say what is missing, as the answer is {self.answer}")
        if (self.answer == "no") == bool(self.rules):
            raise ValueError(
                f"case {self.case}: the answer {self.answer} does not go with the rules {list(self.rules)}"
            )
        return self


def real_cases(file: Path = FILE) -> list[RealCase]:
    """The cases of a file. Raises pydantic.ValidationError where one is not complete, ValueError for equal numbers."""
    cases = TypeAdapter(list[RealCase]).validate_python(yaml.safe_load(file.read_text(encoding="utf-8")))
    if twice := [number for number, count in Counter(case.case for case in cases).items() if count > 1]:
        raise ValueError(f"cases with the same number: {twice}")
    return cases


def cases_page(catalogue: Catalogue) -> str:
    cases = real_cases()
    counts = Counter((case.answer, case.status) for case in cases)
    return join(
        "# Real cases",
        f"{len(cases)} published threads in which somebody found lost time, and the rules that would have named the "
        "cause. Symptoms, causes and numbers are those of the authors, collected in "
        f"{source_link('docs/cases.yaml', PAGE)}. Most of the recordings are not public: the conditions of the rules "
        "were held against the numbers in the threads, and not run on the profiles. Some rules cite a case: their "
        "texts were written with it in view.",
        "## Counts",
        table(
            ("Answer", "Means", *STATUS, "Cases"),
            (
                (answer, meaning, *(counts[answer, status] for status in STATUS), _number(cases, answer))
                for answer, meaning in ANSWERS.items()
            ),
        ),
        "The middle columns are what a thread states: "
        + "; ".join(f"*{word}*: {STATUS[word]}" for word in STATUS)
        + ".",
        "## Cases",
        table(
            ("Case", "Thread", "Shows", "Cause", "Effect", "States", "Answer", "Rules"),
            (
                (
                    to(PAGE, _heading(case), PAGE, str(case.case)),
                    ", ".join(f"[{name}]({url})" for name, url in case.sources.items()),
                    case.shows,
                    case.cause,
                    case.effect,
                    case.status,
                    case.answer,
                    ", ".join(catalogue.rule(name, PAGE) for name in case.rules) or "none",
                )
                for case in cases
            ),
        ),
        "## What the rules would say",
        *(part for case in cases for part in _said(case, catalogue)),
    )


def _number(cases: list[RealCase], answer: str) -> int:
    return sum(case.answer == answer for case in cases)


def _heading(case: RealCase) -> str:
    return f"Case {case.case}"


def _said(case: RealCase, catalogue: Catalogue) -> Iterator[str]:
    yield f"### {_heading(case)}"
    lines = [f"{catalogue.rule(name, PAGE)}: {says}" for name, says in case.rules.items()]
    lines += [f"Missing: {case.missing}"] if case.missing else []
    lines += [f"Risk of the advice: {case.risk}"] if case.risk else []
    yield listing(lines)
