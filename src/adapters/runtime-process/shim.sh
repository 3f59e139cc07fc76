#!/bin/sh
# shim.sh <instance folder> <command> [argument]...
# Outlives the control plane that started it, waits for the application and writes how it ended. Its own stat line goes first, so that it can be found
# again; the file exists already when the start was given up. Signals are caught, not ignored: the application gets the defaults.
trap : HUP INT
folder=$1
# Berth signals the application only. Who signals this process, too, ends the whole service or the machine.
trap 'true >"$folder/stopped"' TERM
shift
read -r stat </proc/$$/stat
set -C
{ echo "$stat" >"$folder/pid"; } 2>/dev/null || exit 0
set +C
exec 2>/dev/null
"$@" 2>&1
# One small write by the shell itself: a program could be killed together with the application. The file's time is the time of the exit.
echo "$?" >"$folder/exit"
# <state folder>/live/<workload>/<ordinal>/<attempt>: the control plane watches <state folder>/ended.
# Not `:`, which is a special built-in: where the file cannot be written, the shell would end here.
true >"$folder/../../../../ended/$$"
# Whatever is left in this process group is of no use any more. Written as POSIX has it: dash takes no `--` after `-KILL`.
kill -s KILL -- "-$$"
