#!/bin/sh
# Installs a signed release of Berth on Linux, as root for the machine or as an ordinary user for that user alone. POSIX sh.
# Running it again changes nothing that is in place. A version other than the installed one comes with `berth platform upgrade`.
set -eu
umask 022

# The public key that signed the release which this file came with; the build of a release fills it in.
release_key=''

usage() {
  cat <<'END'
usage: install.sh [--from URL|FOLDER|ARCHIVE] [--version VERSION] [--prefix FOLDER] [--key FILE] [--no-start]

  --from       the release: the address of its folder, a folder with its files, or its archive beside SHA256SUMS and
               SHA256SUMS.sig; default: BERTH_RELEASE_URL, or the folder of this file
  --version    which version, if there are several
  --prefix     where versions go; default: /opt/berth as root, otherwise ~/.local/share/berth
  --key        a file with the public key that the signature must match; default: the key in this file
  --no-start   only install: no systemd units, nothing is started

With systemd, BERTH_ variables of this call become the service's settings (docs/config.md).
END
}

say() { printf 'berth: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

from=${BERTH_RELEASE_URL:-} version='' prefix='' key_file='' start=yes
while [ $# -gt 0 ]; do
  case $1 in
    --from | --version | --prefix | --key)
      [ $# -gt 1 ] && [ -n "$2" ] || die "$1 needs a value."
      case $1 in --from) from=$2 ;; --version) version=$2 ;; --prefix) prefix=$2 ;; --key) key_file=$2 ;; esac
      shift 2 ;;
    --no-start) start=no; shift ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; die "unknown argument $1." ;;
  esac
done

machine=$(uname -m) system=$(uname -s)
[ "$system" = Linux ] || die "Berth runs on Linux, not on $system."
case $machine in
  x86_64) arch=x64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) die "there is no release for $machine machines, only for x86_64 and aarch64." ;;
esac
# A dynamic loader of glibc is what the release's Node.js starts with.
for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ -e "$loader" ] && glibc=yes; done
[ -n "${glibc:-}" ] || die "this system has no glibc, which the release's Node.js needs (Alpine has musl)."

if [ "$(id -u)" = 0 ]; then
  home=/root default_prefix=/opt/berth commands=/usr/local/bin
else
  home=${HOME:-} commands=${HOME:-}/.local/bin default_prefix=${HOME:-}/.local/share/berth
  [ -d "$home" ] || die "HOME names no folder: set it to yours."
fi
# A prefix of one's own has its commands, too, so that two installations do not share them.
if [ -n "$prefix" ] && [ "$prefix" != "$default_prefix" ]; then commands=$prefix/bin; else prefix=$default_prefix; fi
case $prefix in /*) ;; *) die "--prefix must be an absolute path, not $prefix." ;; esac

# The folder of this file, for a release whose files were copied here by hand.
if [ -z "$from" ]; then
  from=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
  [ -f "$from/SHA256SUMS" ] || die "where is the release? Name its address, folder or archive with --from, or in BERTH_RELEASE_URL."
fi

# need PROGRAM PACKAGE
need() {
  has "$1" && return 0
  if [ "$(id -u)" = 0 ] && has apt-get; then
    say "installing $2 ..."
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y -q --no-install-recommends "$2" >/dev/null 2>&1 ||
      { apt-get update -q >/dev/null 2>&1 && apt-get install -y -q --no-install-recommends "$2" >/dev/null 2>&1; } || true
  fi
  has "$1" || die "$1 is missing: install the package $2, then start again."
}

need openssl openssl
need tar tar
for program in sha256sum mktemp sed sync; do need $program coreutils; done
case $from in http://* | https://*) has curl || has wget || need curl curl ;; esac

mkdir -p "$prefix/versions" 2>/dev/null && [ -w "$prefix/versions" ] || die "$prefix/versions cannot be written: choose another --prefix."
# Unpacked here and renamed at the end: an interrupted call leaves only this folder, which a later call removes.
find "$prefix/versions" -maxdepth 1 -name '.install.*' -mmin +60 -exec rm -rf {} + 2>/dev/null || true
scratch=$(mktemp -d "$prefix/versions/.install.XXXXXX") || die "$prefix/versions cannot be written."
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# fetch NAME: one of the release's files, into the scratch folder.
fetch() {
  case $from in
    http://* | https://*)
      if has curl; then curl -fsSL --retry 2 --connect-timeout 20 -o "$scratch/$1" "${from%/}/$1"
      else wget -q -T 20 -O "$scratch/$1" "${from%/}/$1"; fi || die "${from%/}/$1 could not be fetched." ;;
    *)
      folder=$from
      [ ! -f "$from" ] || folder=$(dirname -- "$from")
      [ -f "$folder/$1" ] || die "$folder/$1 is missing: SHA256SUMS, SHA256SUMS.sig and the archive belong together."
      # Copied, so that what was verified is what is unpacked.
      cp -- "$folder/$1" "$scratch/$1" || die "$folder/$1 could not be copied to $scratch." ;;
  esac
}

if [ -n "$key_file" ]; then
  [ -f "$key_file" ] || die "$key_file, named by --key, is no file."
  cat "$key_file" >"$scratch/key.pem"
elif [ -n "$release_key" ]; then
  printf '%s\n' "$release_key" >"$scratch/key.pem"
else
  die "this install.sh comes from the sources and has no key: use the one of the release, or name the key with --key."
fi
fetch SHA256SUMS
fetch SHA256SUMS.sig
openssl pkeyutl -verify -pubin -inkey "$scratch/key.pem" -rawin -in "$scratch/SHA256SUMS" -sigfile "$scratch/SHA256SUMS.sig" >/dev/null 2>&1 ||
  die "the signature of SHA256SUMS does not match the key: nothing was installed. Get the release and install.sh from the same, trusted place."

case $from in
  *.tar.zst)
    [ -f "$from" ] || die "$from is no file. For an address, name the folder of the release."
    archives=$(basename -- "$from") ;;
  *) archives=$(sed -n "s/^[0-9a-f]\{64\}  \(berth-${version:-[0-9][0-9A-Za-z.+-]*}-linux-$arch\.tar\.zst\)\$/\1/p" "$scratch/SHA256SUMS") ;;
esac
case $archives in
  '') die "$from has no release ${version:+$version }for $machine." ;;
  *.zst*.zst) die "$from has several releases; choose one with --version:
$archives" ;;
esac
archive=$archives
case $archive in berth-*-linux-$arch.tar.zst) ;; *) die "$archive is no release for $machine." ;; esac
sum=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$scratch/SHA256SUMS")
[ -n "$sum" ] || die "$archive is not in SHA256SUMS."
version=${archive#berth-} version=${version%-linux-*}
target=$prefix/versions/$version

installed=$(readlink "$prefix/current" 2>/dev/null || true)
installed=${installed##*/}
[ -z "$installed" ] || [ "$installed" = "$version" ] ||
  die "Berth $installed is installed in $prefix. To change the version: berth platform upgrade $version"

# What is written is on the disk before something refers to it: after a power cut, the link names a complete version or the one before.
synced() { sync -f "$prefix/versions" 2>/dev/null || sync; }

# The archive without its compression, on standard output. Debian's dpkg-deb knows zstd where the program zstd is missing: it reads an
# archive as part of a package, whose format is ar(5).
member() {
  bytes=$(wc -c <"$2" | tr -d ' ')
  printf '%-16s%-12s%-6s%-6s%-8s%-10s`\n' "$1" 0 0 0 100644 "$bytes"
  cat "$2"
  [ $((bytes % 2)) = 0 ] || echo
}
uncompressed() {
  has dpkg-deb || need zstd zstd
  if has zstd; then zstd -dc "$1"; return; fi
  printf '2.0\n' >"$scratch/format"
  tar -cf "$scratch/control.tar" -T /dev/null
  { printf '!<arch>\n'; member debian-binary "$scratch/format"; member control.tar "$scratch/control.tar"; member data.tar.zst "$1"; } >"$scratch/as.deb"
  dpkg-deb --fsys-tarfile "$scratch/as.deb"
}

if [ -f "$target/.sha256" ]; then
  [ "$(cat "$target/.sha256")" = "$sum" ] ||
    die "$target holds another build of $version. Remove it if nothing runs from it, or install a version with another number."
else
  say "fetching $archive ..."
  fetch "$archive"
  printf '%s  %s\n' "$sum" "$scratch/$archive" | sha256sum -c - >/dev/null 2>&1 ||
    die "$archive does not have the checksum that SHA256SUMS names: nothing was installed."
  say "unpacking Berth $version ..."
  mkdir "$scratch/tree"
  uncompressed "$scratch/$archive" | tar -xf - -C "$scratch/tree" --strip-components=1 --no-same-owner ||
    die "$archive could not be unpacked (is the disk full?)."
  "$scratch/tree/.toolchain/bin/node" -e 0 || die "the release's Node.js does not run on this machine."
  echo "$sum" >"$scratch/tree/.sha256"
  synced
  rm -rf "$target"
  mv "$scratch/tree" "$target"
fi

if [ "$installed" != "$version" ]; then
  ln -s "versions/$version" "$scratch/current"
  synced
  mv -f "$scratch/current" "$prefix/current"
  synced
fi
mkdir -p "$commands"
for name in berth berthd; do
  path=$commands/$name
  [ ! -e "$path" ] || [ -h "$path" ] || die "$path exists and is no link of Berth: move it away, then start again."
  ln -sf "$prefix/current/bin/$name" "$path"
done
say "Berth $version is installed in $prefix; its commands are in $commands."
case :$PATH: in *:"$commands":*) ;; *) say "Add them to your PATH: export PATH=\"$commands:\$PATH\"" ;; esac

if [ "$start" = no ] || [ ! -d /run/systemd/system ]; then
  say "Start it: BERTH_ON_STOP=keep $commands/berthd start"
  say "The start prints a link that signs you in."
  exit 0
fi

unit='systemctl'
[ "$(id -u)" = 0 ] || { unit='systemctl --user'; export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"; }
"$prefix/current/bin/berthd" service install >&2
$unit start berth || die "the service did not start: $unit status berth"
token=${BERTH_DATA:-$home/.berth}/admin-token
url=http://127.0.0.1:${BERTH_HTTP_PORT:-4000}
watch="journalctl${unit#systemctl} -u berth -f"
say "Waiting for the first start, which installs what the machine lacks; watch it with: $watch"
tries=0
until [ -f "$token" ] && link=$(BERTH_URL=$url BERTH_TOKEN=$(cat "$token") "$prefix/current/bin/berth" open --dashboard --no-browser 2>/dev/null); do
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || die "it has not started after ten minutes, and goes on: $watch. Once it runs, call this again for the link."
  sleep 1
done
say "Berth runs. Sign in, once and within 15 minutes: $link"
say "On the command line: berth login $url --token-file $token"
