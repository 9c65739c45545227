#!/bin/sh
# Measures what profiles are fitted to and checked against, on two GPUs of one host, over NVLink, host memory and sockets:
#   tests/gpu/measure_and_validate.sh PROGRAM RESULTS [SECONDS]
# PROGRAM: attnsim with CUDA, cuDNN and NCCL; the libraries in the lib/ beside it come first. Where it does not run, one is
# built in build-gpu. SECONDS: for all of it, 480.
# Writes RESULTS/measured_*.json (to fit), held_out_*.json (to check), schedules.jsonl (attnsim validate, a line a run)
# and log.txt. Each step writes what it has as it goes, so a run that is cut off leaves that.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=$2
budget=${3:-480}
. "$here/program.sh"
nvlink=
host_memory='env NCCL_P2P_DISABLE=1'
sockets='env NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1'

# run SECONDS TRANSPORT ARGUMENTS...: attnsim on both GPUs, no longer than SECONDS and what is left
run() {
  limit=$1
  eval "through=\$$2"
  shift 2
  left=$((started + budget - $(date +%s)))
  [ "$left" -lt "$limit" ] && limit=$left
  [ "$limit" -gt 5 ] || { echo "no time left for: $*" >>"$log"; return 1; }
  begun=$(date +%s)
  timeout -k 5 "$limit" "$here/launch" 2 $through "$program" "$@" 2>>"$log"
  code=$?
  now=$(date +%s)
  echo "[$((now - started)) s] $((now - begun)) s, exit $code: $through attnsim $*" >>"$log"
  tail -n 1 "$log" >&2
}
measure() {
  limit=$1 transport=$2
  shift 2
  run $((limit + 15)) "$transport" measure --seconds "$limit" --time-out 20 \
    --out "$results/measured_$transport.json" --held-out "$results/held_out_$transport.json" "$@" >>"$log"
}
# validate SECONDS TRANSPORT CLUSTER: the cases of cases.partial. Done three times: a slow spell of the machine meets a third of
# a case's runs. attnsim compare takes them together.
validate() {
  run "$1" "$2" validate "$here/$3.yaml" --ranks 2 --transport nccl --times-only --time-out 20 --repeats 3 \
    --cases "$results/cases.partial" | grep --line-buffered '^{' >>"$results/schedules.jsonl"
}
# cases STRATEGIES ORDERS HEADS FLAGS...: a line each; strategies as schedule,grid, heads as query/key
cases() {
  strategies=$1 orders=$2 all_heads=$3
  shift 3
  for heads in $all_heads; do for mask in full causal; do for pass in forward backward; do for order in $orders; do
    for strategy in $strategies; do
      echo "--heads ${heads%/*} --kv-heads ${heads#*/} --mask $mask --pass $pass --schedule ${strategy%,*}" \
        "--grid ${strategy#*,} --launch-order $order $*"
    done
  done; done; done; done
}
every='ring,2x1 attention2d,1x2 attention2d,2x1 attention2d-overlap,1x2 attention2d-overlap,2x1 mesh,1x2 mesh,2x1 allgather,2x1'
both='communication-first compute-first'
{ nvidia-smi; nvidia-smi topo -m; } >>"$log" 2>&1
nvidia-smi --query-gpu=timestamp,index,clocks.sm,power.draw,temperature.gpu --format=csv,noheader -lms 2000 \
  >"$results/clocks.partial" 2>/dev/null &
watch=$!

measure 150 nvlink --rounds 7 --largest 256
{
  cases "$every" "$both" '26/26 52/4' --seq 13K --kernel cuda
  cases "$every" communication-first 48/8 --seq 5K --kernel cuda
  cases "$every" communication-first 10/10 --seq 40K --kernel cuda
  cases 'ring,2x1 attention2d,1x2 attention2d-overlap,2x1 allgather,2x1' "$both" 24/24 --seq 22K --kernel cudnn
  cases "$every" communication-first 20/4 --seq 8K --kernel cuda --cuda-graph
} >"$results/cases.partial"
for sweep in 1 2 3; do validate 30 nvlink two-h100; done
cases "$every" "$both" '26/26 52/4' --seq 13K --kernel cuda >"$results/cases.partial"
for sweep in 1 2 3; do validate 25 host_memory two-h100-host-memory; done
measure 40 host_memory --rounds 7 --largest 256 --quick --kinds transfer,overlap --kernels cuda
{
  cases "$every" "$both" 18/18 --seq 5K --kernel cuda
  cases "$every" "$both" 36/12 --seq 7K --kernel cuda
} >"$results/cases.partial"
# Sockets are as fast as the cores that a start happens to get: of both, three starts, in turn.
for sweep in 1 2 3; do
  measure 30 sockets --rounds $((3 * sweep)) --largest 64 --quick --kinds transfer,overlap --kernels cuda
  validate 33 sockets two-h100-sockets
done

kill $watch 2>/dev/null
cat "$results/clocks.partial" >>"$log"
rm -f "$results"/*.partial
ls -l "$results"
wc -l "$results/schedules.jsonl"
