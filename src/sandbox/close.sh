#!/bin/sh
# close.sh <ip> [name server]... -- [IPv4 network]... -- [IPv6 network]... -- command [argument]...
# Runs as root of a network namespace: blocks networks, then execs the command. Uses routing rules, because no copied route overrides them.
# DNS stays allowed, because a cloud's name server can have a blocked address.
ip=$1
shift
while [ "$1" != -- ]; do
  for protocol in udp tcp; do
    "$ip" rule add priority 100 to "$1" ipproto "$protocol" dport 53 lookup main || exit 125
  done
  shift
done
shift
while [ "$1" != -- ]; do
  "$ip" rule add priority 200 to "$1" unreachable || exit 125
  shift
done
shift
while [ "$1" != -- ]; do
  [ ! -s /proc/net/if_inet6 ] || "$ip" -6 rule add priority 200 to "$1" unreachable || exit 125
  shift
done
shift
exec "$@"
