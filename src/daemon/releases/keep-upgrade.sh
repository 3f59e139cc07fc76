#!/bin/sh
# keep-upgrade.sh FILE: runs the program that FILE names until it succeeds, so that a killed upgrade goes on even while no control plane
# runs that could continue it.
until "$(cat "$1")" upgrade; do sleep 1; done
