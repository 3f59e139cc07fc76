#!/bin/sh
# build-reach.sh PROGRAM... [PORT SOCKET]...: a hook of runc, which gives it the container's state. Forwards 127.0.0.1:PORT in the container's
# network to a unix socket of this machine, until the container ends. PROGRAM... are the first five words of sandbox/reach.sh's command line.
# A build that needs no database must not fail for want of one, so this never does.
pid=$(sed -n 's/.*"pid":[[:space:]]*\([0-9]*\).*/\1/p' | head -n 1)
[ -n "$pid" ] || exit 0
nsenter --net="/proc/$pid/ns/net" /bin/sh "$@" -- tail --pid="$pid" -f /dev/null </dev/null >/dev/null 2>&1 &
shift 5
while [ $# -ge 2 ]; do
  hex=$(printf %04X "$1") tries=0
  until grep -q ":$hex 00000000:0000 0A" "/proc/$pid/net/tcp" || [ "$tries" -ge 100 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
  shift 2
done
exit 0
