#!/usr/bin/env sh
# Prints the Chromium that the browser tests and the picture of the report are made with: $CHROMIUM, or one on the PATH.
# Where there is none it is installed if that is possible (as root, with apt-get); else it says what to do and prints
# nothing, and the tests that need it are skipped.
find_one() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome google-chrome-stable; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 && "$name" --version >/dev/null 2>&1; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

find_one && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing Chromium for the browser tests" >&2
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } >&2 2>&1
    find_one && exit 0
fi
echo "no Chromium: the browser tests are skipped. Install it (apt-get install chromium, brew install --cask chromium)" >&2
echo "or set CHROMIUM to the path of a Chromium or Chrome." >&2
