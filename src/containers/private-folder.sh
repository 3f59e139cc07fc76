#!/bin/sh
# private-folder.sh open <folder> <owner> <template> <tree>...: mounts at <folder>/1, <folder>/2 … what the trees hold; changes go to a copy
# of the ext4 file system <template>, which is mounted at <folder>/layer and has no name, so that its disk is free once it is unmounted.
# private-folder.sh close <folder>: takes it back, also half of one.
set -e
action=$1 folder=$2
case $action in
  open)
    owner=$3 template=$4
    shift 4
    mkdir -p "$folder/layer"
    cp --sparse=always "$template" "$folder/layer.ext4"
    mount -t ext4 -o loop,nodev,nosuid,noinit_itable "$folder/layer.ext4" "$folder/layer"
    rm "$folder/layer.ext4"
    number=0
    for tree; do
      number=$((number + 1))
      changes=$folder/layer
      [ $number = 1 ] || changes=$folder/layer/$number
      mkdir -p "$folder/$number" "$changes/upper" "$changes/work"
      mount -t overlay -o "nodev,nosuid,lowerdir=$tree,upperdir=$changes/upper,workdir=$changes/work" berth "$folder/$number"
      chown "$owner:$owner" "$folder/$number"
    done
    ;;
  close)
    for path in "$folder"/*; do
      if mountpoint -q "$path"; then umount -l "$path"; fi
    done
    rm -f "$folder/layer.ext4"
    for path in "$folder"/*; do
      if [ -d "$path" ]; then rmdir "$path"; fi
    done
    if [ -d "$folder" ]; then rmdir "$folder"; fi
    ;;
esac
