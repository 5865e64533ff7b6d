#!/bin/bash
# pack-corpus.sh DIRECTORY ARCHIVE: the files of a fuzz target's corpus, as one archive whose bytes
# depend only on their names and contents.
set -eu
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a=r,u+w \
  -C "$1" -cf - . | gzip -9n >"$2.part"
mv "$2.part" "$2"
