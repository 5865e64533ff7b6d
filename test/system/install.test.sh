#!/bin/bash
# `make install` into a directory of its own: links in the documentation lead somewhere, programs are
# stripped, the service names files that are there, the scenarios run, and `make uninstall` leaves
# nothing.
. "$(dirname "$0")/perf_support.sh"
[ -x "$build/bin/slime-switchd" ] || { echo "skipped: slime-switchd is not built"; exit 77; }
root=$work/root
in_tree() {
  env -u MAKEFLAGS -u MFLAGS make --no-print-directory "$1" BUILD="$build" PREFIX=/usr DESTDIR="$root" \
    DEFAULT_PLUGIN=1 >"$work/make.out" 2>&1
}
# check WHAT COMMAND...: it succeeds, and what it printed is the evidence otherwise
check() {
  local what=$1
  shift
  if "$@" >"$work/check.out" 2>&1; then ok "$what"; else not_ok "$what" "$work/check.out"; fi
}

in_tree install || { not_ok "make install" "$work/make.out"; exit 1; }
broken=''
while IFS= read -r file; do
  for target in $(grep -oE '\]\([^() ]+\)' "$file" | sed -e 's/^](//' -e 's/)$//' -e 's/#.*//'); do
    case $target in *:*) continue ;; esac
    [ -e "$(dirname "$file")/$target" ] || broken+=" ${file#"$root"}:$target"
  done
done < <(find "$root" -name '*.md')
check "relative links of installed documentation: broken:${broken:- none}" [ -z "$broken" ]
check "the README's links to docs/ are links" \
  grep -qF '](docs/switch.md)' "$root/usr/share/doc/libnet-slime/README.md"

for file in usr/share/doc/libnet-slime/docs/switch.md usr/lib/systemd/system/slime-switchd.service \
  usr/share/doc/libnet-slime/examples/switch.example.yaml usr/lib/libnccl-net.so \
  usr/share/libnet-slime/nccl-tests-configs/loopback-2ranks.conf; do
  check "installs $file" test -s "$root/$file"
done
for file in usr/bin/slime-perf usr/bin/slime-switchd usr/lib/libnet-slime.so; do
  readelf -S "$root/$file" >"$work/sections" 2>&1
  check "$file is stripped" [ "$(grep -cE '\.symtab|\.debug_info' "$work/sections")" = 0 ]
done
check "the plugin still exports NCCL's tables" \
  grep -q ncclNetPlugin <(readelf --dyn-syms -W "$root/usr/lib/libnet-slime.so")
check "the example of a configuration is right" "$root/usr/bin/slime-switchd" --check-config \
  --config "$root/usr/share/doc/libnet-slime/examples/switch.example.yaml"

unit=$root/usr/lib/systemd/system/slime-switchd.service
check "the service starts the installed daemon" \
  grep -qx 'ExecStart=/usr/bin/slime-switchd --config /etc/slime/switch.yaml' "$unit"
check "and reads keys again when it is reloaded" grep -q 'ExecReload=.*-HUP' "$unit"
for line in DynamicUser=yes NoNewPrivileges=yes ProtectSystem=strict CapabilityBoundingSet=; do
  check "the service has $line" grep -qx "$line" "$unit"
done
if command -v systemd-analyze >/dev/null; then
  sed "s|/usr/bin/slime|$root/usr/bin/slime|" "$unit" >"$work/slime-switchd.service"
  check "systemd understands it" systemd-analyze verify --man=no "$work/slime-switchd.service"
fi

check "an installed scenario finds the installed programs" env -C "$work" -u SLIME_PERF \
  PATH=/usr/bin:/bin "$root/usr/share/libnet-slime/nccl-tests-configs/run.sh" loopback-2ranks -b 8 -e 8 \
  -n 1 -w 0
check "and keeps its result where it was started" [ -n "$(find "$work/nccl-tests-results" -name '*.json')" ]

in_tree uninstall || not_ok "make uninstall" "$work/make.out"
left=$(find "$root" ! -type d)
check "make uninstall leaves nothing: ${left:-nothing}" [ -z "$left" ]
exit $wrong
