#!/usr/bin/env sh
# Prints the path of a file of a package of the npm registry, which npm fetches into a folder where it is not there yet:
# FOLDER PACKAGE FILE. Prints nothing where there is no npm, or it cannot fetch.
file="$1/package/$3"
if [ ! -f "$file" ] && command -v npm >/dev/null 2>&1; then
    mkdir -p "$1"
    (cd "$1" && tar -xzf "$(npm pack --silent "$2")" "package/$3") >&2
fi
if [ -f "$file" ]; then
    echo "$file"
fi
