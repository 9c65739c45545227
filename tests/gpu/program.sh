# Sourced by what runs attnsim on GPUs, as PROGRAM RESULTS ...: sets program (built in build-gpu where the given one does not
# run), results, log, started, and the variables that its libraries and NCCL need. Needs here and results.
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
started=$(date +%s)
mkdir -p "$results"
log=$results/log.txt
libraries=$(python3 -c "import glob, sys; print(':'.join(g for p in sys.path for g in glob.glob(p + '/nvidia/*/lib')))" 2>/dev/null)
export LD_LIBRARY_PATH="$(dirname "$program")/lib:${libraries:+$libraries:}${LD_LIBRARY_PATH:-}"
export ATTNSIM_TOPOLOGIES="${ATTNSIM_TOPOLOGIES:-$here/../../topologies}"
export NCCL_DEBUG="${NCCL_DEBUG:-WARN}" NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}"
if ! "$program" --version >>"$log" 2>&1; then
  cmake -S "$here/../.." -B "$here/../../build-gpu" -DATTNSIM_TESTS=OFF -DATTNSIM_MPI=OFF >>"$log" 2>&1 &&
    cmake --build "$here/../../build-gpu" --target attnsim -j"$(nproc)" >>"$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
  program=$here/../../build-gpu/cli/attnsim
fi
