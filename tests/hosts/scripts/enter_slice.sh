#!/bin/sh
# enter_slice PROGRAM...: runs rank $RANK on its host, which NCCL takes for a machine of its own.
sleep "$((RANK / 10)).$((RANK % 10))"  # MPS turns clients away that come all at once
exec ip netns exec "h$RANK" env NCCL_HOSTID="h$RANK" ${CONNECTION_NUMBERS:+LD_PRELOAD="$CONNECTION_NUMBERS"} "$@"
