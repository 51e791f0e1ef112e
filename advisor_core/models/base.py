"""What every model of a run has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen value; an unknown field is an error, so that a misspelt name never passes in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(Model):
    """One text a user reads, in both languages of a report."""

    en: str
    zh: str

    def format(self, **values: object) -> Text:
        """The text with ``{name}`` fields filled, in both languages alike."""
        return Text(en=self.en.format(**values), zh=self.zh.format(**values))

    def of(self, lang: str) -> str:
        """The text in ``lang`` (``en`` or ``zh``)."""
        return self.zh if lang == "zh" else self.en


Scalar = bool | int | float | str | None
"""A value in a report: what JSON can carry without loss."""
