#!/bin/sh
# close.sh <ip> ["address port"]... -- ["network unreachable" | "network lookup main"]... -- [the same over IPv6]... -- command [argument]...
# Runs as root of a network namespace: decides which networks it reaches, then execs the command. Uses routing rules, because no copied
# route overrides them. Of the networks, the first one that matches counts. The places stay open although their address may be closed.
ip=$1
shift
while [ "$1" != -- ]; do
  for protocol in udp tcp; do
    "$ip" rule add priority 100 to "${1% *}" ipproto "$protocol" dport "${1#* }" lookup main || exit 125
  done
  shift
done
shift
priority=200
while [ "$1" != -- ]; do
  # shellcheck disable=SC2086 # two or three words
  "$ip" rule add priority $priority to $1 || exit 125
  priority=$((priority + 1))
  shift
done
shift
while [ "$1" != -- ]; do
  # shellcheck disable=SC2086
  [ ! -s /proc/net/if_inet6 ] || "$ip" -6 rule add priority $priority to $1 || exit 125
  priority=$((priority + 1))
  shift
done
shift
exec "$@"
