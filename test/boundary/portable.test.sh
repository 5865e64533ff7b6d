#!/bin/bash
# What users get loads on glibc 2.28, and without this system's libstdc++ and libgcc_s: the versions of
# the symbols that the plugin and the programs need, and their libraries. A test, which is linked as
# any program, shows that the check finds something.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${SLIME_BUILD_DIR:-build}
[ "$(uname -m)" = x86_64 ] || { echo "skipped: glibc 2.28 is the aim on x86-64 only"; exit 77; }
[ -n "${SLIME_PORTABLE-1}" ] || { echo "skipped: built with PORTABLE= for this machine"; exit 77; }
wrong=0

# newer FILE: the symbols that glibc 2.28 does not have, in one line
newer() {
  objdump -T "$1" | grep -F UND |
    sed -nE 's/.*[ (]GLIBC_2\.([0-9]+)(\.[0-9]+)?\)? +(0x[0-9a-f]+ +)?(\.[a-z]+ +)?([A-Za-z0-9_]+)$/\1 \5/p' |
    awk '$1 > 28 { printf("%s (2.%d) ", $2, $1) }'
}
# libraries FILE: which of libstdc++ and libgcc_s it needs
libraries() { readelf -d "$1" | grep -oE 'lib(stdc\+\+|gcc_s)\.so\.[0-9]+' | xargs; }

# check FILE LIBRARIES: it needs nothing newer, and of the two libraries these
check() {
  local file=$1 symbols found
  [ -s "$file" ] || { echo "FAILED: $file is not there"; wrong=1; return; }
  symbols=$(newer "$file") found=$(libraries "$file")
  if [ -z "$symbols" ] && [ "$found" = "$2" ]; then
    echo "ok: $file"
    return
  fi
  echo "FAILED: $file needs of glibc: ${symbols:-nothing new}; libraries: ${found:-none}, not '$2'"
  echo "  portable/glibc.symbols names functions that moved, portable/glibc.cc defines newer ones"
  wrong=1
}

check "$build/lib/libnet-slime.so" ''
check "$build/lib/libslime.so.1" ''
for program in "$build"/bin/slime-* "$build"/bin/example-*; do
  source=${program##*/example-}
  [ ! -f "examples/$source.c" ] || continue # in C, as users build theirs on their machines
  case $program in
  */slime-switchd) check "$program" 'libstdc++.so.6 libgcc_s.so.1' ;; # SHARED_CXX in mk/compile.mk
  *) check "$program" '' ;;
  esac
done
other=$build/test/boundary
if [ -n "$(newer "$other")" ] || [ "$(getconf GNU_LIBC_VERSION | cut -d. -f2)" -lt 34 ]; then
  echo "ok: $other is found wanting"
else
  echo "FAILED: the check finds nothing in $other, which is linked as any program" && wrong=1
fi
exit $wrong
