#!/bin/sh
# veth.sh <ip> <namespace> <link> <address outside> <address inside> <block>
# Creates a network namespace with a link to the host's. Packets to addresses of the block that have no link are unreachable.
# A script, so that Berth forks once instead of three times: a large process forks slowly.
set -e
ip=$1 space=$2 link=$3 outside=$4 inside=$5 block=$6
"$ip" netns add "$space"
"$ip" -batch - <<EOF
link add $link type veth peer name eth0 netns $space
addr add $outside/30 dev $link
route replace unreachable $block
link set $link up
EOF
"$ip" -n "$space" -batch - <<EOF
link set lo up
addr add $inside/30 dev eth0
link set eth0 up
route add default via $outside
EOF
