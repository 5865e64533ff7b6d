#!/bin/bash
# Runs NCCL, through PyTorch, with two ranks on one GPU over the plugin: collectives, types and odd
# sizes with every element checked, NCCL's log, a killed rank. Under five minutes; needs one NVIDIA
# GPU, PyTorch with CUDA, and g++ where the plugin is not built yet.
# Last line: N passed, N failed, N skipped. Exit code: 0, 1, 2 usage, 77 nothing could be run.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 2
top=$(cd "$here/../.." && pwd)

usage() {
  cat <<'EOF'
usage: test/gpu/run.sh [--plugin FILE] [--cpu] [--limit S] [--set NAME=VALUE]...

  --plugin FILE  libnet-slime.so to test (default: build/lib/libnet-slime.so, built if missing)
  --cpu          the same tests over gloo on the CPU: tries the tests themselves, not the plugin
  --set NAME=VALUE  one more variable for both ranks
  --limit S      end everything after S seconds (default 290)
environment: PYTHON (default python3), CXX (g++), CPATH for headers in unusual places
EOF
}

skip() {
  printf 'SKIPPED: %s\n0 passed, 0 failed, 1 skipped\n' "$1"
  exit 77
}

python=${PYTHON:-python3} plugin='' cpu='' more=()
while [ $# -gt 0 ]; do
  case $1 in
  --help | -h) usage; exit 0 ;;
  --cpu) cpu=--cpu; shift ;;
  --plugin | --set | --limit)
    [ $# -ge 2 ] || { usage >&2; exit 2; }
    if [ "$1" = --plugin ]; then plugin=$2; else more+=("$1" "$2"); fi
    shift 2
    ;;
  *) usage >&2; exit 2 ;;
  esac
done

has_headers() {
  printf '#include <tl/expected.hpp>\n#include <nlohmann/json.hpp>\n' |
    ${CXX:-g++} -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

# The plugin needs less than the whole build: no CLI11, no GoogleTest. Hence not by make.
build_plugin() { # FILE
  local objects source
  command -v "${CXX:-g++}" >/dev/null || skip "no ${CXX:-g++} to build the plugin with"
  has_headers || "$top/mk/ensure-tools.sh" build || true
  has_headers || skip "the headers tl/expected.hpp (libexpected-dev) and nlohmann/json.hpp \
(nlohmann-json3-dev) are missing and could not be installed; name their directory in CPATH, or a \
built plugin with --plugin"
  objects=$(mktemp -d) || exit 1
  mkdir -p "$(dirname "$1")"
  cd "$top" || exit 1
  echo "building $1"
  # shellcheck disable=SC2016  # the inner shell expands them
  for source in base/*.cc transports/*.cc transports/*/*.cc devices/*.cc link/*.cc link/*/*.cc message/*.cc message/*/*.cc collnet/*.cc collnet/*/*.cc \
    switch/core/*.cc plugin/*.cc; do
    printf '%s\0%s\0' "$source" "$objects/${source//\//_}.o"
  done | xargs -0 -n 2 -P "$(nproc)" sh -c '${CXX:-g++} -std=c++20 -O2 -fPIC -pthread -Iinclude -I. \
    -fvisibility=hidden -fvisibility-inlines-hidden -c "$0" -o "$1"' &&
    ${CXX:-g++} -shared -pthread -Wl,-soname,libnet-slime.so -Wl,--version-script,plugin/exports.map \
      -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete -o "$1" "$objects"/*.o
  local code=$?
  rm -rf "$objects"
  return $code
}

version=$("$python" "$here/machine.py" $cpu 2>/dev/null) || skip "${version:-$python does not run}"
if [ -n "$cpu" ]; then
  exec "$python" "$here/driver.py" --backend gloo "${more[@]}"
fi
if [ -n "$plugin" ]; then
  [ -r "$plugin" ] || { echo "run.sh: $plugin cannot be read" >&2; exit 2; }
else
  plugin=$top/build/lib/libnet-slime.so
  [ -e "$plugin" ] || plugin=$top/build/gpu-test/libnet-slime.so
  [ -e "$plugin" ] || build_plugin "$plugin" || {
    printf 'not ok: the plugin does not build\n0 passed, 1 failed, 0 skipped\n'
    exit 1
  }
fi
echo "NCCL $version, plugin $plugin, $(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)"
exec "$python" "$here/driver.py" --plugin "$(realpath "$plugin")" --nccl-version "$version" "${more[@]}"
