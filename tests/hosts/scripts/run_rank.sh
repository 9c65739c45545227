#!/bin/sh
# run_rank PROGRAM...: runs one rank. ranks/<rank> beside this script is there once it starts and
# holds its status once it ends.
record=$(dirname "$0")/ranks/$OMPI_COMM_WORLD_RANK
: > "$record"
"$@"
status=$?
echo $status > "$record"
exit $status
