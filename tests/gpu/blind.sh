#!/bin/sh
# A blind check on two GPUs of one host: what tests/gpu/draw.py draws, beside what calibrates the machine in a minute, over NVLink,
# host memory and sockets:
#   tests/gpu/blind.sh PROGRAM DRAWN RESULTS [SECONDS]
# PROGRAM: attnsim with CUDA, cuDNN and NCCL. DRAWN: the folder that draw.py wrote. SECONDS: for all of it, 300.
# Writes RESULTS/fit_TRANSPORT.json and sequences_TRANSPORT.json (to fit), held_out_TRANSPORT.json, schedules_TRANSPORT.jsonl and calls_pytorch.json, host.yaml (to
# check), as it goes; KEEP, where set, is a command that is run after each step; SOCKETS=no leaves sockets out.
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$1 drawn=$2 results=$3 budget=${4:-300}
started=$(date +%s)
mkdir -p "$results"
nvlink='env'
host_memory='env NCCL_P2P_DISABLE=1'
sockets='env NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_SOCKET_IFNAME=lo'

# run SECONDS NAME COMMAND...: on both GPUs, no longer than SECONDS and what is left
run() {
  limit=$1 name=$2
  shift 2
  left=$((started + budget - $(date +%s)))
  [ "$left" -lt "$limit" ] && limit=$left
  [ "$limit" -gt 4 ] || { echo "no time left: $name"; return 1; }
  timeout -k 3 "$limit" "$here/launch" 2 "$@" 2>>"$results/$name.err"
  echo "[$(($(date +%s) - started)) s] $name: exit $?" >&2
  ${KEEP:-:}
}
# of TRANSPORT CLUSTER KINDS CALIBRATE HOLD VALIDATE [STARTS LARGEST]: seconds of each. What goes through the host is as fast as
# the cores that a start gets: what calibrates it is from several starts, of two rounds each.
of() {
  transport=$1 cluster=$2 kinds=$3 starts=${7:-1} largest=${8:-256}
  eval "through=\$$transport"
  for start in $(seq "$starts"); do
    rounds=$((starts > 1 ? 2 * start : 5))
    run $(($4 / starts + 8)) "measure_$transport" $through "$program" measure --quick $kinds --rounds $rounds --largest "$largest" \
      --seconds $(($4 / starts)) --time-out 15 --quiet --out "$results/fit_$transport.json"
  done
  run 13 "sequences_$transport" $through "$program" measure --kernels cuda --kinds sequence --rounds 9 --seconds 5 --time-out 10 --quiet \
    --out "$results/sequences_$transport.json"
  run $(($5 + 8)) "points_$transport" $through "$program" measure --points "$drawn/points_$transport.json" --rounds 3 --seconds "$5" \
    --time-out 15 --quiet --out "$results/held_out_$transport.json"
  run "$6" "schedules_$transport" $through "$program" validate "$here/$cluster.yaml" --device h200-sxm5 --ranks 2 --transport nccl \
    --times-only --time-out 15 --repeats 5 --cases "$drawn/cases_$transport.txt" >"$results/validate_$transport.txt"
  grep '^{' "$results/validate_$transport.txt" >"$results/schedules_$transport.jsonl"
  wc -l <"$results/schedules_$transport.jsonl"
  ${KEEP:-:}
}
run 45 pytorch python3 "$here/pytorch.py" "$results" --seconds 18 --no-kernels --layers "$drawn/layers.json"
of nvlink two-h100 "--kinds kernel,memory,transfer,overlap" 50 20 44
few="--kernels cuda --kinds transfer,overlap"
of host_memory two-h100-host-memory "$few" 18 6 17 3 128
[ "${SOCKETS:-yes}" = no ] || of sockets two-h200-sockets "$few" 15 8 22 3 64
