"""Takes docs/images/report.png: the first screen of the report on the embedded sample, in English.

``make picture`` runs it. Needs Chromium (its path in ``CHROMIUM``) and Pillow. It is taken anew when the report looks
different; nothing checks that it is current, since fonts and browsers differ from machine to machine.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

TARGET = Path(__file__).parent / "images" / "report.png"
WIDTH = 1200
MARGIN = 12
MOST_BYTES = 250_000

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--force-device-scale-factor=1", "--allow-file-access-from-files"),
)

# Frames the report in its width and writes down where the first screen ends.
_PROBE = """<!doctype html><iframe id="f" style="width:{width}px;height:900px;border:0" src="{page}"></iframe>
<pre id="o"></pre><script>
window.onload = () => {{
  const last = document.getElementById('f').contentDocument.querySelector('header .coverage');
  document.getElementById('o').textContent = Math.ceil(last.getBoundingClientRect().bottom);
}};</script>"""


def chromium(folder: Path, page: Path, *flags: str) -> str:
    command = [os.environ.get("CHROMIUM") or "chromium", *_FLAGS, f"--user-data-dir={folder / 'browser'}", *flags]
    return subprocess.run([*command, page.as_uri()], check=True, capture_output=True, text=True, timeout=90).stdout


def report(folder: Path) -> Path:
    """The report of the embedded sample, as a user gets it."""
    advisor = [sys.executable, "-m", "advisor_core"]
    for command in (["sample", "profile"], ["run", "profile", "-o", "report", "--format", "html"]):
        subprocess.run([*advisor, *command], cwd=folder, check=True, capture_output=True)
    return folder / "report" / "report.html"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page, frame, picture = report(folder), folder / "frame.html", folder / "report.png"
        frame.write_text(_PROBE.format(width=WIDTH, page=page.as_uri()), encoding="utf-8")
        dom = chromium(folder, frame, f"--window-size={WIDTH + 100},1000", "--dump-dom")
        height = int(html.unescape(dom.partition('<pre id="o">')[2].partition("</pre>")[0])) + MARGIN
        chromium(folder, page, f"--window-size={WIDTH},{height}", f"--screenshot={picture}")
        # A palette of 256 colours is a third of the size, and no difference is seen.
        with Image.open(picture) as image:
            small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        TARGET.parent.mkdir(exist_ok=True)
        small.save(TARGET, optimize=True)
    size = TARGET.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{TARGET} has {size} bytes, more than {MOST_BYTES}")
    sys.stdout.write(f"{TARGET}: {WIDTH} x {height}, {size} bytes\n")


if __name__ == "__main__":
    main()
