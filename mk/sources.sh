#!/bin/sh
# Every C++ file of the project, one per line, relative to the repository root (or to $1).
cd "${1:-$(dirname "$0")/..}" || exit 1
find . -path './.*' -prune -o -path ./build -prune -o -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.def' \) -print | sed 's|^\./||' | sort
