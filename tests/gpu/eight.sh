#!/bin/sh
# Four and eight GPUs of one host: measures, fits a profile to half of the shapes, and runs all schedules on all grids over
# NVLink, host memory, and sockets between two and four "nodes" that NCCL_HOSTID makes of the host:
#   tests/gpu/eight.sh PROGRAM RESULTS [SECONDS]
# PROGRAM: attnsim with CUDA, cuDNN and NCCL; the libraries in the lib/ beside it come first. Where it does not run, one is
# built in build-gpu. SECONDS: for all of it, 560. With fewer than eight GPUs several ranks share one (a dry run: numbers
# hold, times do not) and sequences are short.
# Writes RESULTS/fit.json, held_out.json, profile.yaml, schedules_*.jsonl, compared.txt, points_*.csv, log.txt and all of
# them as eight.tgz.
set -u
here=$(cd "$(dirname "$0")" && pwd)
results=$2
budget=${3:-560}
. "$here/program.sh"
{ nvidia-smi; nvidia-smi topo -m; } >>"$log" 2>&1
gpus=$(nvidia-smi -L | grep -c '^GPU')
dry=
[ "$gpus" -ge 8 ] || dry=1
card=h100-sxm5
nvidia-smi -L | grep -q H200 && card=h200-sxm5

# run SECONDS RANKS HOW ARGUMENTS...: attnsim on so many ranks; HOW: environment, or "nodes N" for ranks in N nodes
run() {
  limit=$1 ranks=$2 how=$3
  shift 3
  left=$((started + budget - $(date +%s)))
  [ "$left" -lt "$limit" ] && limit=$left
  [ "$limit" -gt 5 ] || { echo "no time left for: $*" >>"$log"; return 1; }
  case $how in
    nodes*) through="$here/in_node $((ranks / ${how#nodes }))" ;;
    *) through=${how:+env $how} ;;
  esac
  begun=$(date +%s)
  timeout -k 5 "$limit" "$here/launch" "$ranks" $through "$program" "$@" 2>>"$log"
  code=$?
  now=$(date +%s)
  echo "[$((now - started)) s] $((now - begun)) s, exit $code: $ranks ranks, ${how:-NVLink}: attnsim $*" | tee -a "$log" >&2
}
grids() {
  case $1 in
    4) echo '1x4 2x2 4x1' ;;
    8) echo '1x8 2x4 4x2 8x1' ;;
  esac
}
# cases RANKS SEQUENCE ORDERS: a line each
cases() {
  for heads in 32/32 64/8; do for mask in full causal; do for pass in $passes; do for order in $3; do
    line="--heads ${heads%/*} --kv-heads ${heads#*/} --mask $mask --pass $pass --launch-order $order --seq $2 --kernel cuda"
    echo "$line --schedule ring"
    echo "$line --schedule allgather"
    [ "$pass" = backward ] || echo "$line --schedule ulysses"
    for grid in $(grids "$1"); do
      for schedule in attention2d attention2d-overlap mesh; do echo "$line --schedule $schedule --grid $grid"; done
    done
  done; done; done; done
}
# schedules SECONDS RANKS HOW CLUSTER SEQUENCE ORDERS
schedules() {
  cases "$2" "$5" "$6" >"$results/cases.partial"
  if [ -n "$dry" ]; then checks='--repeats 1'; else checks='--times-only --repeats 5'; fi
  run "$1" "$2" "$3" validate "$here/$4.yaml" --device "$card" --ranks "$2" --transport nccl $checks --time-out 30 \
    --cases "$results/cases.partial" | grep --line-buffered '^{' >>"$results/schedules_$4.jsonl"
}
compare() {
  "$program" compare "$here/$1.yaml" "$results/schedules_$1.jsonl" --device "$results/profile.yaml" \
    --points "$results/points_$1.csv" >>"$results/compared.txt" 2>>"$log"
}

both='communication-first compute-first' passes='forward backward'
if [ -n "$dry" ]; then long=512 short=512 both=communication-first passes=both; else long=48K short=24K; fi
export NCCL_MAX_NCHANNELS="${NCCL_MAX_NCHANNELS:-${dry:+2}}"
[ -n "$NCCL_MAX_NCHANNELS" ] || unset NCCL_MAX_NCHANNELS
[ -n "$dry" ] ||
  run 110 8 '' measure --quick --seconds 90 --time-out 30 --out "$results/fit.json" --held-out "$results/held_out.json" >>"$log"
schedules 90 8 "" eight-h100 $long "$both"
schedules 50 4 '' four-h100 $short communication-first
schedules 90 8 NCCL_P2P_DISABLE=1 eight-h100-host-memory $short communication-first
for nodes in 2 4; do schedules 70 8 "nodes $nodes" eight-h100-$nodes-nodes $short communication-first; done
if [ -s "$results/fit.json" ]; then
  "$program" calibrate --device "$card" --measurements "$results/fit.json@$here/eight-h100.yaml" \
    --out "$results/profile.yaml" >>"$log" 2>&1
  "$program" compare "$here/eight-h100.yaml" "$results/held_out.json" --device "$results/profile.yaml" >>"$results/compared.txt"
  for cluster in eight-h100 four-h100 eight-h100-host-memory eight-h100-2-nodes eight-h100-4-nodes; do compare $cluster; done
fi
rm -f "$results"/*.partial
wc -l "$results"/schedules_*.jsonl
tar czf "$results.tgz" -C "$results" . && mv "$results.tgz" "$results/eight.tgz"
