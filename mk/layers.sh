#!/bin/sh
# layers.sh [ROOT]: checks which room includes which, see mk/layers.awk. It needs only a shell, find
# and awk, because it is part of every build.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
cd "${1:-$here/..}" || exit 1
files=$("$here/sources.sh" .) || exit 1
[ -n "$files" ] || { echo "layers: no sources in $(pwd)" >&2; exit 1; }
# shellcheck disable=SC2086  # our file names have no spaces
exec awk -f "$here/layers.awk" $files
