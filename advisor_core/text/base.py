"""The base of all models of a result, and texts in two languages."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from advisor_core.text.plural import countable


class Model(BaseModel):
    """A frozen value; an unknown field is an error, so that a misspelt name never passes in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Text(Model):
    """One text a user reads, in both languages of a report."""

    en: str
    zh: str

    def format(self, **values: object) -> Text:
        """The text with ``{name}`` fields filled: a value that is a text in its language, others alike in both.

        ``{count:row is|rows are}`` chooses the form that fits a whole number.
        """
        english, chinese = (
            {name: value.of(lang) if isinstance(value, Text) else countable(value) for name, value in values.items()}
            for lang in ("en", "zh")
        )
        return Text(en=self.en.format(**english), zh=self.zh.format(**chinese))

    def of(self, lang: str) -> str:
        """The text in ``lang`` (``en`` or ``zh``)."""
        return self.zh if lang == "zh" else self.en


Scalar = bool | int | float | str | None
"""A value in a report: what JSON can carry without loss."""
