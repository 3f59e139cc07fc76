#!/bin/sh
# finish-root.sh ROOT: the hook that mmdebstrap runs on a root folder before packing it. NODE_BIN and NPM_DIR add Node.js.
set -eu
root=$1

# `extract` runs no package's scripts, so users, the shell and the certificates are created here.
if [ ! -e "$root/etc/passwd" ]; then
  printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
  "$root/bin/busybox" --list | while read -r applet; do
    [ -e "$root/bin/$applet" ] || [ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
  done
  mkdir -p "$root/usr/bin" "$root/root" "$root/tmp"
  [ -e "$root/usr/bin/env" ] || ln -s /bin/busybox "$root/usr/bin/env"
  chmod 1777 "$root/tmp"
fi
[ ! -e "$root/usr/bin/python3" ] || ln -sf python3 "$root/usr/bin/python"
mkdir -p "$root/etc/ssl/certs"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

if [ -n "${NODE_BIN:-}" ]; then
  mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/node_modules"
  cp "$NODE_BIN" "$root/usr/local/bin/node"
  cp -RL "$NPM_DIR" "$root/usr/local/lib/node_modules/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
  printf 'node:x:1000:1000:node:/home/node:/bin/sh\n' >>"$root/etc/passwd"
  printf 'node:x:1000:\n' >>"$root/etc/group"
  mkdir -p "$root/home/node" && chown 1000:1000 "$root/home/node"
fi
rm -rf "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/var/cache/apt/archives" "$root/var/lib/apt/lists"
mkdir -p "$root/var/cache/apt/archives/partial" "$root/var/lib/apt/lists/partial"
