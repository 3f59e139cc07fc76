#!/bin/sh
# runc.sh RUNC PLACES PARENT OTHERS BYTES ARGS...: runs RUNC, puts a container whose build has a place in PLACES into that build's control group,
# and lets no command write a file of more than BYTES.
runc=$1 places=$2 parent=$3 others=$4 bytes=$5
shift 5
bundle=
previous=
for word; do
  [ "$previous" = --bundle ] && bundle=$word
  previous=$word
done
if [ -n "$bundle" ]; then
  config=$bundle/config.json
  # A quote inside of a string is escaped, so neither pattern is found in what a Dockerfile says.
  scope=$(grep -o '"BERTH_CACHE_SCOPE=[0-9a-f]*"' "$config" | head -n 1)
  scope=${scope#*=}
  tag=$(printf %s "${scope%?}" | sha256sum | cut -c 1-16)
  group=$(cat "$places/$tag" 2>/dev/null || echo "$others")
  limit='{"type":"RLIMIT_FSIZE","hard":'$bytes',"soft":'$bytes'}'
  # BuildKit sets no limits itself; where an engine does, this is one more.
  sed -i -e "s#\"rlimits\":\[#&$limit,#" -e "t done" -e "s#\"process\":{#&\"rlimits\":[$limit],#" -e ":done" \
    -e "s#\"cgroupsPath\":\"$parent/$others/\(buildkit/\)\{0,1\}#\"cgroupsPath\":\"$parent/$group/#" "$config"
fi
exec "$runc" "$@"
