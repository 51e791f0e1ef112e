"""``advisor collect --check``: the script with its texts in one language."""

from __future__ import annotations

import json
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from advisor_core.collecting.render import wrapped
from advisor_core.text.base import Text
from advisor_core.text.packaged import packaged_yaml

_PACKAGE = "advisor_core.collecting.machine"


@cache
def texts() -> dict[str, Text]:
    """The texts of the script, by id; ``comment`` stands at its top."""
    return {name: Text.model_validate(found) for name, found in packaged_yaml(_PACKAGE, "texts.yaml").items()}


def script(lang: str) -> str:
    """The script, for Python 3.7 and later without further packages."""
    said = {name: text.of(lang) for name, text in texts().items()}
    lines = wrapped(said.pop("comment"))
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "."), undefined=StrictUndefined, keep_trailing_newline=True
    )
    template = environment.get_template("check.py.j2")
    return template.render(
        comment="\n".join(f"# {line}" for line in lines), said=json.dumps(said, indent=4, ensure_ascii=False)
    )
