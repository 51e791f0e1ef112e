"""Builds our wheel and the example plugin's, installs both into a new environment, and uses them there: the example's
own tests run from the wheels."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from commands import build_wheel, call, new_environment

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "advisor-plugin-hello"
TYPED = {"advisor_core", "advisors", "rulesets", "reports"}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sources = [source for source in (ROOT, EXAMPLE) if (source / "pyproject.toml").exists()]
        for source in sources:
            build_wheel(source, folder / "wheels")
        wheels = sorted((folder / "wheels").glob("*.whl"))
        binaries = new_environment(sys.executable, folder / "env", *wheels, "pytest")
        # In a folder of its own, so that nothing of the checkout is on the path.
        work = folder / "work"
        work.mkdir()
        call(binaries / "advisor", "sample", "profile", cwd=work)
        call(binaries / "advisor", "run", "profile", "-o", "report", cwd=work)
        result = json.loads((work / "report" / "report.json").read_text(encoding="utf-8"))
        assert result["findings"], "the sample has known problems"
        assert "<html" in (work / "report" / "report.html").read_text(encoding="utf-8")
        plugins = json.loads(call(binaries / "advisor", "plugins", "--json", cwd=work))
        failed = [plugin for plugin in plugins if plugin["problem"]]
        assert not failed, failed
        packages = [path.parent for path in (folder / "env").rglob("py.typed") if path.parent.name in TYPED]
        assert {path.name for path in packages} == TYPED, packages
        tests = shutil.copytree(EXAMPLE / "tests", folder / "tests")
        call(binaries / "python", "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", folder, tests, cwd=work)
        sys.stdout.write(
            f"wheel: {len(result['rules'])} rules, {len(result['findings'])} findings, {len(plugins)} plugins\n"
        )


if __name__ == "__main__":
    main()
