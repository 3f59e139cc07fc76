#!/bin/sh
# runc.sh RUNC PLACES PARENT OTHERS BYTES ARGS...: runs RUNC, puts a container whose build has a place in PLACES into that build's control group,
# notes there which layers it writes, gives it the build's hook, which forwards to the project's database, and lets no command write a file of
# more than BYTES.
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
  # A quote inside of a string is escaped, and BuildKit's own mounts come first, so a Dockerfile cannot name another file.
  hosts=$(grep -o '"destination":"/etc/hosts","type":"bind","source":"[^"]*"' "$config" | head -n 1)
  hosts=${hosts#*\"source\":\"}
  scope=$(sed -n 's/^.*[[:space:]]\([0-9a-f]*\)\.scope\.berth\.invalid$/\1/p' "${hosts%?}")
  tag=$(printf %s "$scope" | sha256sum | cut -c 1-16)
  group=$(cat "$places/$tag" 2>/dev/null || echo "$others")
  # What the command writes: its layer, whose mount names the folder, and cache folders.
  [ -e "$places/$tag" ] && {
    sed -n "s#^[^ ]* $bundle/rootfs [^ ]* [^ ]*upperdir=\([^, ]*\)/diff[, ].*#\1#p" /proc/self/mounts
    grep -o '"type":"bind","source":"[^"]*/overlay2/[^"]*","options":\[[^]]*\]' "$config" | grep -v '"ro"' |
      sed 's#.*\(/overlay2/[^/"]*\).*#\1#'
  } | sed 's#.*/##' >>"$places/$tag.layers"
  hook=$(cat "$places/$tag.hook" 2>/dev/null)
  [ -z "$hook" ] || sed -i -e "s#\"hooks\":{#&\"createRuntime\":[$hook],#" -e "t" -e "s#^{#&\"hooks\":{\"createRuntime\":[$hook]},#" "$config"
  limit='{"type":"RLIMIT_FSIZE","hard":'$bytes',"soft":'$bytes'}'
  # BuildKit sets no limits itself; where an engine does, this is one more.
  sed -i -e "s#\"rlimits\":\[#&$limit,#" -e "t done" -e "s#\"process\":{#&\"rlimits\":[$limit],#" -e ":done" \
    -e "s#\"cgroupsPath\":\"$parent/$others/\(buildkit/\)\{0,1\}#\"cgroupsPath\":\"$parent/$group/#" "$config"
fi
exec "$runc" "$@"
