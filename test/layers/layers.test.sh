#!/bin/bash
# Each rule of mk/layers.awk on a small tree: the clean tree passes, and one added line fails it with
# a message that names the file, the line and the rule.
set -u
check=$(cd "$(dirname "$0")/../.." && pwd)/mk/layers.sh
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
wrong=0

clean_tree() {
  rm -rf "${root:?}"/*
  mkdir -p "$root"/{include/slime,base,settings,transports/{tcp,verbs},devices,link,message,collnet,plugin,peer,c_abi,aggregation,examples,switch/{core,p4driver,protocol},tools/x,bench/x,test/{unit,support}}
  cd "$root" || exit 1
  printf '#pragma once\n#include <cstdint>\n' >include/slime/a.h
  printf '#include <stddef.h>\n#include <stdint.h>\n' >include/slime/c.h
  printf '#pragma once\n#include <cstdint>\n#include <sys/uio.h>\n#include <tl/expected.hpp>\n' >base/b.h
  printf '#include "base/b.h"\n#include <zlib.h>\n' >base/b.cc
  printf '#include "base/b.h"\n' | tee settings/s.h >switch/protocol/p.h
  printf '#include "base/b.h"\n#include "settings/s.h"\n' >transports/rail.h
  printf '#include "transports/rail.h"\n' | tee transports/registry.h transports/tcp/tcp.h >transports/verbs/verbs.h
  printf '#include "transports/registry.h"\n#include "transports/tcp/tcp.h"\n' >transports/registry.cc
  printf '#include "transports/tcp/tcp.h"\n#include "base/b.h"\n' >transports/tcp/tcp.cc
  printf '#include "transports/registry.h"\n' >devices/d.h
  printf '#include "devices/d.h"\n' >link/l.h
  printf '#include "link/l.h"\n// a word about ncclResult_t\n' >message/e.h
  printf '#include "message/e.h"\n' >collnet/c.h
  printf '#include "collnet/c.h"\n#include "message/e.h"\n#include "slime_version.h"\n' >plugin/p.h
  printf 'ncclResult_t init();\n' >plugin/p.cc
  printf '#include "link/l.h"\n' >peer/p.h
  printf '#include "peer/p.h"\n#include <slime/c.h>\n' >c_abi/c.cc
  printf '#include "collnet/c.h"\n#include "message/e.h"\n' >aggregation/g.h
  printf '#include <slime/a.h>\n' | tee examples/x.cc >>aggregation/g.h
  printf '#include "switch/protocol/p.h"\n' >switch/core/c.h
  printf '#include "switch/core/c.h"\n' >switch/p4driver/d.h
  printf '#include "switch/p4driver/d.h"\n' | tee switch/s.h >switch/s.cc
  printf '#include "plugin/p.h"\n#include "transports/verbs/verbs.h"\n' | tee tools/x/t.h bench/x/b.cc test/support/s.h >test/unit/t.h
  printf '#include "test/support/s.h"\n' >>bench/x/b.cc
}

# refuses FILE LINE_TEXT MESSAGE: the added line, and only it, fails the check.
refuses() {
  clean_tree
  printf '%s\n' "$2" >>"$1"
  local line output
  line=$(wc -l <"$1")
  if output=$("$check" "$root" 2>&1); then
    echo "not ok: $1 was accepted with: $2"
    wrong=1
  elif [[ $output != *"$1:$line: "*"$3"*"; "* || $(wc -l <<<"$output") -ne 2 ]]; then
    printf 'not ok: %s with: %s\n  wanted one message with: %s\n%s\n' "$1" "$2" "$3" "$output"
    wrong=1
  else
    echo "ok: $1 refuses $2"
  fi
}

clean_tree
if ! output=$("$check" "$root" 2>&1); then
  printf 'not ok: the clean tree is refused\n%s\n' "$output"
  wrong=1
fi

refuses include/slime/a.h '#include <nlohmann/json.hpp>' 'only the C or C++ library'
refuses include/slime/a.h '#include <sys/uio.h>' 'only the C or C++ library'
refuses base/b.h '#include <nlohmann/json.hpp>' 'only the C++ and POSIX libraries'
refuses base/b.h '#include "settings/s.h"' 'base may include only'
refuses base/b.cc '#include "switch/protocol/p.h"' 'base may include only'
refuses message/e.h '#include <slime/a.h>' 'message includes an installed header'
refuses switch/protocol/p.h '#include "settings/s.h"' 'protocol may include only'
refuses include/slime/a.h '#include "message/e.h"' 'include may include only'
refuses include/slime/a.h '#include <slime/none.h>' 'does not exist'
refuses base/b.cc '#include "transports/rail.h"' 'base may include only'
refuses transports/rail.h '#include "message/e.h"' 'rail may include only'
refuses transports/rail.h '#include "transports/registry.h"' 'rail may include only'
refuses transports/rail.h '#include "transports/tcp/tcp.h"' 'includes a backend'
refuses transports/registry.h '#include "transports/tcp/tcp.h"' 'includes a backend'
refuses transports/registry.cc '#include "message/e.h"' 'registry may include only'
refuses transports/tcp/tcp.cc '#include "transports/verbs/verbs.h"' 'backend tcp includes backend verbs'
refuses transports/tcp/tcp.cc '#include "transports/registry.h"' 'backend may include only'
refuses transports/tcp/tcp.cc '#include "message/e.h"' 'backend may include only'
refuses transports/tcp/tcp.cc '#include "tcp.h"' 'does not exist'
refuses message/e.h '#include "transports/tcp/tcp.h"' 'message includes a backend'
refuses link/l.h '#include "transports/tcp/tcp.h"' 'link includes a backend'
refuses plugin/p.h '#include "link/l.h"' 'plugin may include only'
refuses message/e.h '#include "collnet/c.h"' 'message may include only'
refuses link/l.h '#include "message/e.h"' 'link may include only'
refuses devices/d.h '#include "link/l.h"' 'devices may include only'
refuses message/e.h '#include "plugin/p.h"' 'message may include only'
refuses message/e.h 'ncclResult_t post();' "only plugin/ knows NCCL's types"
refuses message/e.h '#include <nccl.h>' 'only plugin/ knows NCCL'
refuses message/e.h '#include "slime/a.h"' 'angle brackets'
refuses message/e.h '#include <message/e.h>' 'is a file of a room'
refuses message/e.h '#include SOME_MACRO' 'cannot be checked'
refuses collnet/c.h '#include "plugin/p.h"' 'collnet may include only'
refuses peer/p.h '#include "message/e.h"' 'peer may include only'
refuses peer/p.h '#include <slime/c.h>' 'peer includes an installed header'
refuses link/l.h '#include "peer/p.h"' 'link may include only'
refuses c_abi/c.cc '#include "message/e.h"' 'c_abi may include only'
refuses plugin/p.h '#include "peer/p.h"' 'plugin may include only'
refuses plugin/p.h '#include "transports/rail.h"' 'plugin may include only'
refuses plugin/p.h '#include "tools/x/t.h"' 'plugin may include only'
refuses plugin/p.h '#include "aggregation/g.h"' 'plugin may include only'
refuses aggregation/g.h '#include "plugin/p.h"' 'aggregation may include only'
refuses examples/x.cc '#include "collnet/c.h"' 'examples may include only'
refuses switch/s.cc '#include "message/e.h"' 'switch may include only'
refuses switch/p4driver/d.h '#include "switch/s.h"' 'p4driver may include only'
refuses collnet/c.h '#include "switch/p4driver/d.h"' 'collnet may include only'
refuses tools/x/t.h '#include "test/unit/t.h"' 'nothing includes test/'
refuses bench/x/b.cc '#include "test/unit/t.h"' 'nothing includes test/'
refuses tools/x/t.h '#include "test/support/s.h"' 'nothing includes test/'
refuses test/unit/t.h '#include "bench/x/b.cc"' 'test may include only'

clean_tree
mkdir drivers
echo 'int x;' >drivers/d.cc
if output=$("$check" "$root" 2>&1) || [[ $output != *"drivers/d.cc:1: "*"no known room"* ]]; then
  printf 'not ok: a file outside every room is accepted\n%s\n' "$output"
  wrong=1
fi

exit $wrong
