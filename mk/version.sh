#!/bin/sh
# version.sh VERSION FILE: writes the version header, and touches it only when it changes.
# An archive made by git carries the commit in the next line (see .gitattributes); a checkout asks git.
archived='$Format:%h$'
cd "$(dirname "$0")/.." || exit 1
commit=unknown
case $archived in
*Format*)
  # safe.directory: `sudo make install` in a user's checkout must not lose the commit.
  if [ -e .git ] && found=$(git -c safe.directory='*' describe --always --dirty --abbrev=12 \
    --exclude='*' 2>/dev/null); then
    commit=$found
  fi
  ;;
*) commit=$archived ;;
esac
text=$(printf '#pragma once\n#define SLIME_VERSION "%s"\n#define SLIME_COMMIT "%s"\n' "$1" "$commit")
[ -f "$2" ] && [ "$(cat "$2")" = "$text" ] || printf '%s\n' "$text" >"$2"
