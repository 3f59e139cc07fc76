#!/bin/sh
# stage.sh <folder> [source]... -- command [argument]...
# In a mount namespace of its own: binds each source to <folder>/0, <folder>/1 …, where every user may look, and becomes the command.
folder=$1 number=0
shift
mount -t tmpfs -o mode=0755,size=64k berth "$folder" || exit 125
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir "$folder/$number"; else : >"$folder/$number"; fi
  mount --rbind "$1" "$folder/$number" || exit 125
  number=$((number + 1))
  shift
done
shift
exec "$@"
