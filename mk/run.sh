#!/bin/sh
# run.sh BUILD RAIL COMMAND...: runs the command over the transport RAIL; empty: as the settings say.
# If RAIL does not exist, or finds no rail on this host, prints the list of all transports, and why.
set -u
build=$1 rail=$2
shift 2
# A name that means a transport with more settings gets a case of its own.
case $rail in
'') ;;
shm | efa | *\;*) export NCCL_SLIME_TRANSPORTS=libfabric NCCL_SLIME_FABRIC_PROVIDER="$rail" ;;
libfabric:*) export NCCL_SLIME_TRANSPORTS=libfabric NCCL_SLIME_FABRIC_PROVIDER="${rail#*:}" ;;
*) export NCCL_SLIME_TRANSPORTS="$rail" ;;
esac
if [ -n "$rail" ]; then
  "$build/bin/slime-info" --transports || exit
  echo
fi
echo "$*"
exec "$@"
