#!/usr/bin/env sh
# Prints the path of axe-core, which the browser tests judge the accessibility of reports with: $AXE, or a copy that npm
# fetches into the folder that is given. Where there is no npm, or it cannot fetch, it says so and prints nothing, and the
# test that needs it is skipped.
script="${AXE:-$("$(dirname "$0")/from_npm.sh" "$1" axe-core@4 axe.min.js)}"
if [ -n "$script" ]; then
    echo "$script"
else
    echo "no axe-core: the accessibility of reports is not tested. Install npm, or set AXE to the path of axe.min.js." >&2
fi
