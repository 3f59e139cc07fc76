#!/bin/sh
# keep-upgrade.sh FILE: runs the program that FILE names until it removes FILE, so that a killed upgrade goes on even while no control
# plane runs that could continue it.
while [ -f "$1" ]; do "$(cat "$1")" upgrade || sleep 1; done
