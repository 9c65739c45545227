#!/bin/sh
# Builds the GPU programs from CUDA's toolkit and CMake alone, then checks and times the kernels on this machine's GPU.
#   tests/gpu/run.sh [FOLDER]      build folder, default build-gpu; SANITIZE=1 also runs compute-sanitizer; SKIP_BUILD=1
# Logs go to FOLDER/*.log. Exit 1 if a check fails.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/build-gpu}
if [ -z "${SKIP_BUILD:-}" ]; then
  cmake -S "$root/tests/gpu" -B "$folder" -DCMAKE_BUILD_TYPE=Release >/dev/null || exit 1
  cmake --build "$folder" -j"$(nproc)" || exit 1
fi
# cuDNN loads its own parts, and NVRTC, by name: Python's nvidia/ packages are not on the loader's path.
libraries=$(python3 -c "import glob, sys; print(':'.join(g for p in sys.path for g in glob.glob(p + '/nvidia/*/lib')))" 2>/dev/null)
export LD_LIBRARY_PATH="${libraries:+$libraries:}${LD_LIBRARY_PATH:-}"
failed=0
"$folder/attention_check" >"$folder/attention_check.log" 2>&1 || failed=1
grep -v '^  ok' "$folder/attention_check.log"
if [ -n "${SANITIZE:-}" ]; then
  for tool in memcheck racecheck; do
    compute-sanitizer --tool $tool --error-exitcode 9 "$folder/attention_check" --quick --cases 6 --own \
      >"$folder/$tool.log" 2>&1 || failed=1
    tail -n 2 "$folder/$tool.log"
  done
fi
"$folder/attention_bench" --generic 2>&1 | tee "$folder/attention_bench.log"
exit $failed
