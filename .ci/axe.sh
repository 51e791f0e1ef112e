#!/usr/bin/env sh
# Prints the path of axe-core, which the browser tests judge the accessibility of reports with: $AXE, or a copy that npm
# fetches into the folder that is given. Where there is no npm, or it cannot fetch, it says so and prints nothing, and the
# test that needs it is skipped.
folder="$1"
script="$folder/package/axe.min.js"
if [ -n "${AXE:-}" ]; then
    echo "$AXE"
    exit 0
fi
if [ ! -f "$script" ] && command -v npm >/dev/null 2>&1; then
    mkdir -p "$folder"
    (cd "$folder" && npm pack --silent axe-core@4 >&2 && tar -xzf axe-core-4*.tgz package/axe.min.js) >&2 2>&1
fi
if [ -f "$script" ]; then
    echo "$script"
else
    echo "no axe-core: the accessibility of reports is not tested. Install npm, or set AXE to the path of axe.min.js." >&2
fi
