#!/bin/sh
# Runs the programs for several GPUs: numbers over NVLink, host memory and sockets, with one and with several ranks a GPU,
# failures, transfer times, overlap.
#   tests/gpu/nccl.sh BUILD RESULTS [STEP...]     BUILD holds the programs; steps: see below, default all
# Writes RESULTS/*.csv, timelines.jsonl and log.txt. Exit 1 if a check fails; one over NVLink with two ranks ends it all.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$1
results=$2
shift 2
steps=${*:-nvlink cudnn graph starts shm sockets failures shared sweep overlap blocking}
libraries=$(python3 -c "import glob, sys; print(':'.join(g for p in sys.path for g in glob.glob(p + '/nvidia/*/lib')))" 2>/dev/null)
export LD_LIBRARY_PATH="$build:${libraries:+$libraries:}${LD_LIBRARY_PATH:-}"
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}" NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}"
nvlink=
shm='env NCCL_P2P_DISABLE=1'
sockets='env NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1'
mkdir -p "$results"
log=$results/log.txt
failed=0
started=$(date +%s)

# run SECONDS RANKS TRANSPORT PROGRAM ARGUMENTS...: output goes to the log and to RESULTS/last
run() {
  limit=$1 ranks=$2 program=$4
  eval "through=\$$3"
  shift 4
  timeout -k 5 "$limit" "$here/launch" "$ranks" $through "$build/$program" "$@" >"$results/last" 2>&1
  code=$?
  echo "[$(($(date +%s) - started)) s] $ranks ranks, exit $code: $through $program $*" | tee -a "$log"
  cat "$results/last" >>"$log"
  return $code
}
check() {
  limit=$1 ranks=$2 transport=$3
  shift 3
  run "$limit" "$ranks" "$transport" schedule_check --csv "$results/schedules_$transport.csv" "$@" || failed=1
  grep -v 'NCCL' "$results/last" | tail -n 12
}
sweep() {
  run 90 2 "$1" transfer_sweep --transport "$@"
  grep "^$1," "$results/last" >>"$results/transfers.csv"
}
overlap() {
  run 60 2 "$1" overlap --transport "$@"
  grep "^$1," "$results/last" | tee -a "$results/overlap.csv"
}
for step in $steps; do
  echo "== $step"
  case $step in
    blocking)
      for transport in nvlink shm; do
        overlap $transport --blocking 1 --timeline "$results/timelines.jsonl"
      done ;;
    nvlink)
      check 60 2 nvlink --seconds 40
      [ "$failed" -eq 0 ] || { tail -n 40 "$log"; exit 1; } ;;
    graph) check 60 2 nvlink --graph 1 --seconds 15 --first "${GRAPH_FIRST:-0}" ;;
    starts)
      export ATTNSIM_TOPOLOGIES="$here/../../topologies"
      for how in "mpirun --allow-run-as-root -np 2" "torchrun --no-python --nproc-per-node 2" "$here/launch 2"; do
        echo "$how"
        timeout -k 5 60 $how "$build/attnsim" validate "$here/two-h100.yaml" --ranks 2 --seq 16K --heads 32 \
          --schedule ring --transport nccl --kernel cudnn >"$results/last" 2>>"$log" || failed=1
        timeout -k 5 60 $how "$build/attnsim" validate "$here/two-h100.yaml" --ranks 2 --seq 16K --heads 32 \
          --schedule ring --transport nccl --kernel cuda --cuda-graph >>"$results/last" 2>>"$log" || failed=1
        grep -E 'tolerance|total' "$results/last" | tee -a "$results/starts.txt"
      done ;;
    cudnn) check 70 2 nvlink --kernel cudnn --seconds "${CUDNN_SECONDS:-35}" ;;
    shm | sockets) check 60 2 "$step" --seconds 25 ;;
    shared)
      for ranks in ${SHARED_RANKS:-4 8 16}; do
        NCCL_MAX_NCHANNELS=2 check 110 $ranks nvlink --seconds "${SHARED_SECONDS:-35}" --first "${SHARED_FIRST:-0}"
      done ;;
    failures)
      for how in hang kill; do
        run 30 2 nvlink schedule_check --fail $how --rank 1 --time-out 5
        grep '^rank' "$results/last"
      done ;;
    sweep)
      sweep nvlink
      sweep shm
      sweep sockets --largest 67108864 ;;
    overlap)
      for sequence in 16384 32768; do
        overlap shm --seq $sequence --timeline "$results/timelines.jsonl"
        overlap nvlink --seq $sequence --timeline "$results/timelines.jsonl"
      done
      overlap shm --kernel cudnn --timeline "$results/timelines.jsonl"
      overlap shm --priorities 0
      for channels in 2 8; do overlap shm --channels $channels; done ;;
  esac
done
rm -f "$results/last"
exit $failed
