#!/bin/sh
# run_on_slices RANKS GPUS SHARE CHANNELS RAILS NUMBERS PROGRAM...: a rank a host of so many rails, each with SHARE per cent of a card's
# multiprocessors and a device of NCCL's of its own. NUMBERS: the library that numbers their connections, or nothing. The first rank
# that fails ends the others; its status is the script's.
folder=$(dirname "$0")
ranks=$1 gpus=$2 share=$3 channels=$4 rails=$5
export CONNECTION_NUMBERS=$6
shift 6
export CUDA_MPS_PIPE_DIRECTORY=$folder/mps CUDA_MPS_LOG_DIRECTORY=$folder/mps
mkdir -p "$folder/mps"
nvidia-cuda-mps-control -d || exit 1
# Clients share the card's queues: 16 with the usual 8 each find it "busy" or "out of memory", with 4 they do not.
connections=$((64 / ranks))
[ $connections -le 8 ] || connections=8
export CUDA_DEVICE_MAX_CONNECTIONS=${CUDA_DEVICE_MAX_CONNECTIONS:-$connections}
# Trees of NCCL's (PAT) are for nodes of one GPU: real nodes have more.
export NCCL_PAT_ENABLE=${NCCL_PAT_ENABLE:-0}
# A message goes by one connection, in large pieces: halves on two that share a link come out of step, and then wait for each other.
# Of several rails each has its half, as NCCL does it.
if [ "$rails" -eq 1 ]; then
  export NCCL_NCHANNELS_PER_NET_PEER=${NCCL_NCHANNELS_PER_NET_PEER:-1} NCCL_P2P_NET_CHUNKSIZE=${NCCL_P2P_NET_CHUNKSIZE:-524288}
fi
echo "start_server -uid $(id -u)" | nvidia-cuda-mps-control
GPUS=$gpus MASTER_ADDR=10.64.0.1 NCCL_SOCKET_IFNAME=rail NCCL_MIN_NCHANNELS=$channels NCCL_MAX_NCHANNELS=$channels \
  CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$share "$folder/launch" "$ranks" "$folder/enter_slice" "$@"
status=$?
# A card that MPS still holds answers the next program with "busy or unavailable".
echo quit | nvidia-cuda-mps-control
for tenth in $(seq 100); do
  grep -qs '^nvidia-cuda-mps' /proc/[0-9]*/comm || break
  sleep 0.1
done
exit $status
