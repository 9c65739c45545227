#!/bin/sh
# Runs layers of a transformer and times matrix products on two H200 of one host, as reproduce/measured/h200-layers has them:
#   tests/gpu/layers.sh PROGRAM RESULTS
# PROGRAM: attnsim with CUDA, cuBLASLt and NCCL. Takes some three minutes. Writes RESULTS/numbers.jsonl (small layers against fp64;
# exit code 1 where one is wrong), schedules_nvlink.jsonl (times of 36 layers), fit_nvlink.json and held_out_nvlink.json (products).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
mkdir -p "$2"
results=$(cd "$2" && pwd)
cd "$here/../.."
models=reproduce/measured/h200-layers

# layers MODEL TOKENS: a line for each way to cut a layer over two ranks
layers() {
  for cut in "--tp 2" "--cp 2 --schedule ring" "--cp 2 --schedule allgather" "--cp 2 --schedule ulysses" \
    "--cp 2 --schedule attention2d" "--dp 2 --shard parameters"; do
    echo "--model $1 --seq $2 $cut"
  done
}
# validate OUT FLAGS...: the cases of standard input on both GPUs
validate() {
  out=$1
  shift
  cat >"$results/cases"
  "$here/launch" 2 "$program" validate dgx-h200 --nodes 1 --ranks 2 --scope layer --transport nccl --kernel cuda --time-out 30 \
    --cases "$results/cases" "$@" >"$results/$out.partial"
  grep '^{' "$results/$out.partial" >"$results/$out"  # NCCL prints its version
  rm "$results/$out.partial" "$results/cases"
}

{ layers $models/h512.json 256
  echo "--model $models/h512.json --seq 256 --tp 2 --recompute full --micro-batch 2"
  echo "--model $models/h512.json --seq 256 --cp 2 --schedule ring --tokens striped"
} | validate numbers.jsonl --repeats 2
{ layers llama3-8b 8K; layers llama3-8b 32K; layers llama3-70b 16K; layers $models/h2048.json 32K; layers llama2-7b 16K
  layers llama2-70b 8K
} | validate schedules_nvlink.jsonl --times-only
CUDA_VISIBLE_DEVICES=0 "$program" measure --kinds matmul,elementwise --kernels cuda --rounds 3 --out "$results/fit_nvlink.json" \
  --held-out "$results/held_out_nvlink.json"
