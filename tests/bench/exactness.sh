#!/usr/bin/env bash
# What exactness costs on the cpu plane: the same kernels built as they are, and built to fuse
# multiply-adds and to leave subnormals alone (--preset fast), in turns. A ratio of 0.95 is a price of 5 %.
#   tests/bench/exactness.sh [MODEL...]   such as 135m-q8_0 1.1b-q4_0; OPTIONS="--rounds 5" for bench
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
threads=2 tokens=64
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(135m-q8_0 1.1b-q4_0)
read -ra options <<<"${OPTIONS:---rounds 3}"
[[ -f build/fast/build.ninja ]] || cmake --preset fast >/dev/null
cmake --build --preset fast >/dev/null
mkdir -p build/bench
for model in "${models[@]}"; do
  file=build/bench/$model.gguf
  [[ -s $file ]] || python3 tests/bench/random_gguf.py "${model%%-*}" "${model#*-}" "$file"
  measure="--model $file --threads $threads --tokens $tokens --decode $tokens"
  echo
  echo "exact against fast:"
  # shellcheck disable=SC2086
  build/release/bin/shoal-run bench $measure "${options[@]}" \
    --vs "build/fast/bin/shoal-run --json bench $measure"
done
