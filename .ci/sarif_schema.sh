#!/usr/bin/env sh
# Prints the path of the JSON schema of SARIF 2.1.0 by OASIS, which the tests validate report.sarif with: $SARIF_SCHEMA, or
# a copy that npm fetches into the folder that is given, in a package of matchers for tests. Where there is no npm, or it
# cannot fetch, it says so and prints nothing, and the test that needs it is skipped.
file=lib/schemas/sarif-2.1.0-rtm.5.json
schema="${SARIF_SCHEMA:-$("$(dirname "$0")/from_npm.sh" "$1" @microsoft/jest-sarif@1.0.0-beta.0 "$file")}"
if [ -n "$schema" ]; then
    echo "$schema"
else
    echo "no schema of SARIF: report.sarif is not validated with it. Install npm, or set SARIF_SCHEMA to its path." >&2
fi
