#!/bin/bash
# The first steps of docs/switch.md, as they are written there but for the address, the directory and
# the group: a switch with a key, and ranks that use it.
. "$(dirname "$0")/perf_support.sh"
. test/doc_block.sh
[ -x "$build/bin/slime-switchd" ] || { echo "skipped: slime-switchd is not built"; exit 77; }
command -v openssl >/dev/null || { echo "skipped: openssl is not here, which makes the key"; exit 77; }
# The default ports are part of what is tried, so the address is one that nobody else has.
host=127.$((RANDOM % 200 + 10)).$((RANDOM % 250)).$((RANDOM % 250 + 1))
group=$(id -gn)
etc=$work/etc/slime
mkdir "$work/etc"
export PATH=$PWD/$build/bin:$PATH LD_LIBRARY_PATH=$PWD/$build/lib

# block HEADING N: the N-th indented block below it, with this host's addresses and names
block() {
  doc_block docs/switch.md "$1" "$2" |
    sed -E -e "s|/etc/slime|$etc|g" -e "s|10\.0\.0\.9|$host|g" -e "s/-g (slime|physics)/-g $group/"
}
block '## Use it' 1 >"$work/switch.sh"
block '## Use it' 2 >"$work/worker.sh"
block '### Tenants' 1 >"$work/tenants.sh"
start=$(tail -n 1 "$work/switch.sh")
case $start in
"slime-switchd --config $etc/switch.yaml") ok "the last step starts the switch" ;;
*) not_ok "the last step of docs/switch.md does not start the switch: $start" ;;
esac
grep -q '^groupadd --system slime' "$work/switch.sh" && ok "the group is made" ||
  not_ok "docs/switch.md makes no group" "$work/switch.sh"

# groupadd is an administrator's: all others are done as written, whatever the umask is.
for mask in 022 077; do
  rm -rf "$etc"
  if (umask $mask; groupadd() { :; }; set -e; . <(sed '$d' "$work/switch.sh")) >"$work/steps.err" 2>&1
  then ok "the steps with umask $mask"; else not_ok "the steps with umask $mask" "$work/steps.err"; fi
  modes=$(stat -c '%a %G' "$etc" "$etc/switch.key" "$etc/switch.yaml" | xargs)
  if [ "$modes" = "755 $group 640 $group 644 $group" ]; then ok "modes with umask $mask: $modes"; else
    not_ok "modes with umask $mask: $modes"
  fi
done

"${launcher[@]}" slime-switchd --config "$etc/switch.yaml" >"$work/ready" 2>"$work/switch.err" &
switch_pid=$!
if retry 300 grep -qs "ready: data $host:28880-28883, control $host:28900, key" "$work/ready"; then
  ok "the switch is ready"
else
  not_ok "the switch is not ready" "$work/switch.err"
  exit 1
fi
. "$work/worker.sh"
run ranks 0 all_reduce --algo collnet --ranks 2 -b 4K -e 4K -n 2 -w 0 -c 1
if grep -qE "generation [0-9]+: tenant default, 2 children" "$work/switch.err"; then
  ok "the ranks had a job"
else
  not_ok "the ranks had no job" "$work/switch.err"
fi

# A key for each tenant, taken by the switch that runs.
if (set -e; . "$work/tenants.sh") >"$work/steps.err" 2>&1; then ok "the steps for tenants"; else
  not_ok "the steps for tenants" "$work/steps.err"
fi
kill -HUP $switch_pid
retry 300 grep -qs 'SIGHUP: keys and quotas were read again' "$work/switch.err" ||
  not_ok "the switch does not read its keys again" "$work/switch.err"
run with_old_key 3 all_reduce --algo collnet --ranks 2 -b 4 -e 4 -n 1 -w 0
says with_old_key 'not signed with the key of tenant default'
export NCCL_SLIME_SWITCH_TENANT=physics NCCL_SLIME_SWITCH_KEY_FILE=$etc/tenants/physics
run tenant 0 all_reduce --algo collnet --ranks 2 -b 4 -e 4 -n 1 -w 0 -c 1
exit $wrong
