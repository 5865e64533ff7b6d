#!/bin/bash
# root.sh CACHE: a minimal Debian 12 with git and make in CACHE/root, made once by debootstrap from the
# mirror that this machine's apt uses: one to three minutes, 350 MB. It has no package lists, as
# images of containers have none.
#   SLIME_NO_INSTALL=1   installs and downloads nothing
# Exit code: 0 it is there, 77 it cannot be had here (the last line says why).
set -u
cache=$1
suite=bookworm
made=$cache/made.$suite.1 # with another number where the root changes

cannot() {
  echo "fresh: $1" >&2
  exit 77
}

# mirror: the address of the first archive of Debian that apt reads
mirror() {
  apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == $3 && $3 !~ /-/ { print $4; exit }'
}

[ ! -e "$made" ] || exit 0
[ "${SLIME_NO_INSTALL:-0}" != 1 ] ||
  cannot "no Debian in $cache, and SLIME_NO_INSTALL=1 forbids the download; unset it"
from=$(mirror) && [ -n "$from" ] || cannot "apt reads no archive of Debian here; run this on a Debian \
machine after apt-get update"
mkdir -p "$cache" || cannot "$cache cannot be made"
rm -rf "$cache/root"
echo "fresh: a minimal Debian ($suite) in $cache/root; the log is $cache/debootstrap.log" >&2
# apt knows the proxy, and debootstrap takes it from the environment.
eval "$(apt-config shell proxy Acquire::http::Proxy)"
[ -z "${proxy:-}" ] || export http_proxy=$proxy
debootstrap --variant=minbase --include=git,make --keyring=/usr/share/keyrings/debian-archive-keyring.gpg "$suite" "$cache/root" "$from" \
  >"$cache/debootstrap.log" 2>&1 ||
  cannot "debootstrap failed: $(tail -n 1 "$cache/debootstrap.log")"
apt-config dump | grep -iE '^Acquire::[^ ]*proxy' >"$cache/root/etc/apt/apt.conf.d/90host"
rm -rf "$cache/root/var/lib/apt/lists" "$cache/root"/var/cache/apt/archives/*.deb
mkdir -p "$cache/archives/partial" "$cache/root/var/lib/apt/lists/partial"
: >"$made"
