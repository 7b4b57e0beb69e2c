#!/bin/sh
# Runs a command with its address space limited. Usage: with_address_space.sh KIBIBYTES COMMAND [ARGUMENT...]
set -eu
if [ $# -lt 2 ]; then
  echo "usage: with_address_space.sh KIBIBYTES COMMAND [ARGUMENT...]" >&2
  exit 2
fi
ulimit -v "$1"
shift
exec "$@"
