# The cases of run.sh, in the order in which a user meets them. Each calls `does` or `refuses`.
# Machines: `builder` begins with git, make and a clone; `runner` gets what `make install` placed
# there, and nothing else.

# driver_config DRIVER: starts slime-switchd with a switch in P4 of this kind
driver_config() {
  echo "printf '%s\n' 'device: {driver: $1, runtime: \"127.0.0.1:1\", mac: \"02:00:00:00:00:01\"}' \
      'data: {listen: \"10.0.0.254:28880\", shards: 1}' \
      'hosts: {10.0.0.1: {mac: \"02:00:00:00:00:0a\", port: 0}}' >switch.yaml
    build/bin/slime-switchd --config switch.yaml"
}

# What README says to type, one line at a time. `make check` takes as long here as anywhere, installs
# what other cases must not find, and CI runs it anyway: FRESH_CHECK=1 runs it here too, at the end.
try_it() {
  local line
  while IFS= read -r line; do
    line=$(sed -E 's/ *#.*//' <<<"$line")
    [ "$line" = 'make check' ] ||
      does "README, Try it: $line" builder root "$clone" "$line" '#wrong'
  done < <(doc_block README.md '## Try it' 1)
}

cases() {
  machine builder
  # Without root and sudo nothing is installed; the error says what to type.
  refuses 'make run by a user who cannot install' builder user "$user_clone" 'make run' \
    'apt-get install g\+\+ .*libfabric-dev'
  refuses 'make run where installing is forbidden' builder root "$clone" 'SLIME_NO_INSTALL=1 make run' \
    'not installing'
  try_it
  refuses 'make run RAIL= with a wrong name' builder root "$clone" 'make run RAIL=pigeon' \
    '^  tcp +rails? ' '^  pigeon +wanted +there is no such transport'
  refuses 'bmv2 without Thrift' builder root "$clone" "$(driver_config bmv2)" 'built without Thrift'
  refuses 'Tofino without gRPC' builder root "$clone" "$(driver_config tofino)" 'built without gRPC'

  does 'README, Use it with NCCL' builder root "$clone" \
    "set -ex; $(doc_block README.md '## Use it with NCCL' 1); slime-info; slime-info --topology; slime-info --transports"
  # A user's tree that was built before: nothing to install, nothing to compile.
  give_user_the_build
  does 'make run by a user, built before' builder user "$user_clone" 'make run'
  does 'make install by a user' builder user "$user_clone" \
    'make install PREFIX=$HOME/slime && $HOME/slime/bin/slime-info --transports'
  # The packages that the README names for it, then its lines as they stand.
  does 'README, Use it without NCCL: packages' builder root / \
    "$(doc_block README.md '## Use it without NCCL' 1)"
  does 'README, Use it without NCCL' builder user "$user_clone" \
    "set -ex; $(doc_block README.md '## Use it without NCCL' 2)"

  does 'README, Move memory between processes: packages' builder root / \
    "$(doc_block README.md '## Move memory between processes' 1)"
  does 'README, Move memory between processes' builder user "$user_clone" \
    "set -ex; $(doc_block README.md '## Move memory between processes' 2)" \
    '^1048576 of 1048576 bytes are right' '^ +[0-9]+ +16777216 .* 0$'

  machine runner
  cp -a "$cache/builder/opt/slime" "$cache/runner/opt/slime"
  local on_path='export PATH=/opt/slime/bin:$PATH LD_LIBRARY_PATH=/opt/slime/lib; '
  does 'nothing that is optional is there' runner user / \
    '! ls /usr/lib/*/libibverbs* /usr/lib/*/libfabric* /usr/lib/*/libhwloc* /usr/lib/*/libgrpc* /usr/lib/*/libthrift*'
  does 'slime-info without libfabric and rdma-core' runner user / "$on_path slime-info --transports" \
    '^  tcp +.*rail' '^  libfabric +no rail here' '^  verbs +no rail here'
  does 'slime-info --topology without hwloc' runner user / "$on_path slime-info --topology"
  does 'slime-perf without them' runner user / \
    "$on_path slime-perf all_reduce --ranks 2 -b 8 -e 1M -f 16 -c 1"
  does 'a switch: packages' runner root / "$(doc_block README.md '## Use it with NCCL' 2)"
  does 'a switch, by a user' runner user / "$on_path"'
    slime-switchd & sleep 1; export NCCL_SLIME_SWITCH=127.0.0.1:28900
    slime-perf all_reduce --algo collnet --ranks 2 -b 4K -e 4K -n 2 -c 1 && slime-switchctl stats'

  [ "${FRESH_CHECK:-0}" != 1 ] ||
    does 'README, Try it: make check' builder root "$clone" 'make check' 'passed, 0 failed'
}
