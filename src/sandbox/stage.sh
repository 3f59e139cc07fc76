#!/bin/sh
# stage.sh <folder> <owner> <template> <image> <table> [name]... -- command [argument]...
# In a mount namespace of its own: mounts what <table> lists, as fstab(5), below <folder>, where every user may look, and becomes the
# command. Names with a slash at the end are folders to make there, the others files. A mount at <folder>/layer takes the changes of
# <folder>/0: <image> is a copy of the ext4 file system <template> for that (it loses its name at once and is gone with the last process),
# or both are `-` and it lies in memory. <owner> gets the folder; `-` means that this runs in a user namespace.
# One program each for all folders and all mounts: starting programs is what entering a sandbox takes its time for.
folder=$1 owner=$2 template=$3 image=$4 table=$5
shift 5
folders="$folder/."
mount -t tmpfs -o mode=0755,size=64k berth "$folder" || exit 125
while [ "$1" != -- ]; do
  case $1 in
    */) folders="$folders $folder/$1" ;;
    *) : >"$folder/$1" ;;
  esac
  shift
done
shift

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
  [ -d "$folder/layer/upper" ] || mkdir "$folder/layer/upper" "$folder/layer/work" || return 1
  options="lowerdir=$folder/lower,upperdir=$folder/layer/upper,workdir=$folder/layer/work"
  [ "$owner" != - ] || options=$options,userxattr
  mount -t overlay -o "$options" berth "$folder/0" || return 1
  [ "$owner" = - ] || chown "$owner:$owner" "$folder/0"
}

# The folder's own name has no blanks.
# shellcheck disable=SC2086
mkdir -p $folders || exit 125
printf %s "$table" >"$folder/table" || exit 125
[ "$image" = - ] || cp --sparse=always "$template" "$image" || exit 125
mount --all --fstab "$folder/table"
mounted=$?
[ "$image" = - ] || rm -f "$image"
[ "$mounted" = 0 ] || exit 125
[ ! -d "$folder/layer" ] || put_layer || exit 125
unneeded | xargs -0 -r umount --lazy --no-canonicalize 2>/dev/null
exec "$@"
