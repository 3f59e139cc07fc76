#!/bin/sh
# build-engine.sh RESOLVERS COMMAND...: the engine's mounts are its own, and its daemon asks the resolvers that its network reaches.
set -e
mount --bind "$1" /etc/resolv.conf
shift
exec "$@"
