#!/bin/sh
# stage.sh <folder> <owner> <template> <image> <table> [name]... -- command [argument]...
# Runs in its own mount namespace: mounts what <table> lists, in the format of fstab(5), below <folder>, which every user may read, then
# execs the command. Names that end in a slash are folders to create there, others are files. A mount at <folder>/layer stores the changes
# to <folder>/0: either on <image>, a copy of the ext4 file system <template> (unlinked at once, so it disappears with the last process),
# or, if both are `-`, in memory. <owner> becomes the folder's owner; `-` means that this runs in a user namespace.
# All folders are created by one program and all mounts by another: starting programs takes most of the time to enter a sandbox.
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

# Lists the host's mounts that are no longer needed, which are all but the system's: a copy of a mount would keep its disk busy on the host.
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

# Unquoted on purpose: the folder's name has no blanks.
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
