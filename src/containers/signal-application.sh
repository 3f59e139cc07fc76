#!/bin/sh
# signal-application.sh <signal> <wrappers> <package managers>: runs inside a container and signals its application. A shell or a package
# manager that waits for a child does not get the signal, but the child does: see process-tree.ts. It needs no program but the shell.
signal=$1 wrappers=$2 managers=$3

# Sets `children` to the living processes whose parent is $1.
find_children() {
  wanted=$1 children=
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    # State and parent stand behind the name, which may contain spaces and parentheses.
    # shellcheck disable=SC2086
    set -- ${line##*) }
    case $1 in Z | X) continue ;; esac
    if [ "$2" = "$wanted" ]; then children="$children ${line%% *}"; fi
  done
}

is_manager() {
  name=${1##*/}
  name=${name%%[!a-zA-Z0-9_]*}
  case " $managers " in *" $name "*) [ -n "$name" ] ;; *) return 1 ;; esac
}

is_wrapper() {
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  name=${line#*(}
  name=${name%)*}
  case " $wrappers " in *" $name "*) return 0 ;; esac
  # npm sets its name. Others are scripts of node, in the second word of the command line.
  if is_manager "$name"; then return 0; fi
  # An image without `tr` has no package manager.
  tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" | {
    read -r program
    read -r script
    is_manager "$program" || { [ "${program##*/}" = node ] && is_manager "$script"; }
  }
}

# Functions in parentheses have variables of their own, which the recursion needs.
signal_behind_wrappers() (
  find_children "$1"
  if [ -n "$children" ] && is_wrapper "$1"; then
    for child in $children; do signal_behind_wrappers "$child"; done
  else
    kill "-$signal" "$1" 2>/dev/null
  fi
)

find_children 1
for main in $children; do signal_behind_wrappers "$main"; done
exit 0
