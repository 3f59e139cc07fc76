#!/bin/sh
# private-folder.sh open <folder> <tree> <owner> <template>: mounts at <folder>/app what <tree> holds; changes go to a copy of the ext4 file
# system <template>, which is mounted at <folder>/layer and has no name, so that its disk is free once it is unmounted.
# private-folder.sh close <folder>: takes it back, also half of one.
set -e
action=$1 folder=$2
case $action in
  open)
    tree=$3 owner=$4 template=$5
    mkdir -p "$folder/layer" "$folder/app"
    cp --sparse=always "$template" "$folder/layer.ext4"
    mount -t ext4 -o loop,nodev,nosuid,noinit_itable "$folder/layer.ext4" "$folder/layer"
    rm "$folder/layer.ext4"
    mount -t overlay -o "nodev,nosuid,lowerdir=$tree,upperdir=$folder/layer/upper,workdir=$folder/layer/work" berth "$folder/app"
    chown "$owner:$owner" "$folder/app"
    ;;
  close)
    for name in app layer; do
      if mountpoint -q "$folder/$name"; then umount -l "$folder/$name"; fi
    done
    rm -f "$folder/layer.ext4"
    for name in app layer; do
      if [ -d "$folder/$name" ]; then rmdir "$folder/$name"; fi
    done
    if [ -d "$folder" ]; then rmdir "$folder"; fi
    ;;
esac
