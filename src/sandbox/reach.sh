#!/bin/sh
# reach.sh <setpriv|-> <socat|-> <node> <reach.mjs> [port socket]... -- command [argument]...
# Runs in the sandbox's network namespace and the host's file system: forwards 127.0.0.1:<port> to a unix socket of the host.
# Then execs the command; the forwarders end with this process.
setpriv=$1 socat=$2 node=$3 script=$4
shift 4
bound=
if [ "$setpriv" != - ]; then
  # CAP_DAC_OVERRIDE is the only capability that root needs, to reach sockets in other users' folders.
  bound="$setpriv --pdeathsig KILL --no-new-privs --inh-caps=-all"
  [ "$(id -u)" = 0 ] && "$setpriv" --bounding-set=-all,+dac_override true 2>/dev/null && bound="$bound --bounding-set=-all,+dac_override"
fi
ports=
while [ "$1" != -- ]; do
  if [ "$socat" != - ]; then
    $bound "$socat" "TCP4-LISTEN:$1,bind=127.0.0.1,reuseaddr,fork,max-children=256" "UNIX-CONNECT:$2" </dev/null >/dev/null 2>&1 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- &
  else
    $bound "$node" "$script" "$1" "$2" </dev/null >/dev/null 2>&1 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- &
  fi
  ports="$ports $1"
  shift 2
done
shift
for port in $ports; do
  hex=$(printf %04X "$port") tries=0
  until grep -q ":$hex 00000000:0000 0A" /proc/net/tcp || [ "$tries" -ge 100 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done
done
exec "$@"
