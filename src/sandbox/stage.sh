#!/bin/sh
# stage.sh <folder> <layer> <owner> [source]... -- command [argument]...
# In a mount namespace of its own: binds each source to <folder>/0, <folder>/1 …, where every user may look, and becomes the command.
# <layer> says how the first source becomes writable without being changed: `-` (not at all), `disk:<image>` (a copy of this empty ext4
# file system takes the changes; it has no name and is gone with the last process), or `memory:<bytes>`. <owner> gets the folder; `-` means
# that this runs in a user namespace.
folder=$1 layer=$2 owner=$3 number=0
shift 3

# Of the host's mounts only those of the system are needed from here on: a copy of another would keep its disk busy on the host.
unneeded() {
  while read -r _ path _; do
    case $path in *\\*) path=$(printf %b "$path") ;; esac
    case $path/ in
      // | /usr/* | /bin/* | /sbin/* | /lib* | /etc/* | /proc/* | /dev/* | /sys/* | "$folder"/*) ;;
      *) printf '%s\0' "$path" ;;
    esac
  done </proc/self/mounts
}

put_layer() {
  mkdir "$folder/lower" "$folder/layer" && mount --bind "$1" "$folder/lower" || return 1
  case $layer in
    disk:*)
      template=${layer#disk:} image=${layer#disk:}.$$
      cp --sparse=always "$template" "$image" && mount -o loop,nodev,nosuid,noinit_itable "$image" "$folder/layer"
      made=$?
      rm -f "$image"
      [ "$made" = 0 ] || return 1
      ;;
    memory:*) mount -t tmpfs -o "nodev,nosuid,size=${layer#memory:}" berth "$folder/layer" || return 1 ;;
  esac
  mkdir "$folder/layer/upper" "$folder/layer/work"
  options="lowerdir=$folder/lower,upperdir=$folder/layer/upper,workdir=$folder/layer/work"
  [ "$owner" != - ] || options=$options,userxattr
  mount -t overlay -o "$options" berth "$2" || return 1
  [ "$owner" = - ] || chown "$owner:$owner" "$2"
}

mount -t tmpfs -o mode=0755,size=64k berth "$folder" || exit 125
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir "$folder/$number"; else : >"$folder/$number"; fi
  if [ "$layer" != - ] && [ "$number" = 0 ]; then
    put_layer "$1" "$folder/0" || exit 125
  else
    mount --rbind "$1" "$folder/$number" || exit 125
  fi
  number=$((number + 1))
  shift
done
shift
unneeded | xargs -0 -r umount --lazy --no-canonicalize 2>/dev/null
exec "$@"
