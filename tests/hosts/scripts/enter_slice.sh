#!/bin/sh
# enter_slice PROGRAM...: runs rank $RANK on its host, which NCCL takes for a machine of its own.
exec ip netns exec "h$RANK" env NCCL_HOSTID="h$RANK" "$@"
