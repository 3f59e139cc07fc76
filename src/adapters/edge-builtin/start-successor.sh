#!/bin/sh
# start-successor.sh <pid of the edge process>
# Runs beside an edge process, as the user it was started as, and keeps its listening sockets open as descriptors 3 and 4. For each line on stdin it
# starts the process that the control plane wrote into `successor` (three lines: node, program, settings file) with those sockets, and prints
# its pid. Nothing of what the edge process says is used. Ends with the edge process.
while IFS= read -r _; do
  { IFS= read -r node && IFS= read -r program && IFS= read -r settings; } <successor || continue
  "$node" --disable-warning=ExperimentalWarning "$program" "$settings" "$1" inherit </dev/null >>edge.log 2>&1 &
  echo "$!"
done
