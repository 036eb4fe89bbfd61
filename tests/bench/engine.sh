#!/usr/bin/env bash
# The cpu plane beside llama.cpp (npm's node-llama-cpp, where npm and a network are there): models of
# random weights in real shapes, in turns, on two threads. Goals: both ratios 1.1 or more.
#   tests/bench/engine.sh [MODEL...]   such as 135m-q8_0 1.1b-q4_0; OPTIONS="--rounds 3" for bench
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
threads=2 tokens=64
models=("$@")
[[ ${#models[@]} -gt 0 ]] || models=(135m-q8_0 135m-q4_0 1.1b-q8_0 1.1b-q4_0)
mkdir -p build/bench/rival
export SHOAL_RIVAL=$PWD/build/bench/rival
if command -v npm >/dev/null && [[ ! -d $SHOAL_RIVAL/node_modules/node-llama-cpp ]]; then
  npm install --silent --prefix "$SHOAL_RIVAL" node-llama-cpp@3.22.1 >/dev/null 2>&1 ||
    echo "npm cannot bring llama.cpp: our figures alone"
fi
read -ra options <<<"${OPTIONS:-}"
for model in "${models[@]}"; do
  file=build/bench/$model.gguf
  [[ -s $file ]] || python3 tests/bench/random_gguf.py "${model%%-*}" "${model#*-}" "$file"
  rival=()
  if [[ -d $SHOAL_RIVAL/node_modules/node-llama-cpp ]]; then
    rival=(--vs "node tests/bench/llama.mjs $file $threads $tokens $tokens")
  fi
  echo
  build/release/bin/shoal-run bench --model "$file" --threads "$threads" --tokens "$tokens" \
    --decode "$tokens" "${rival[@]}" "${options[@]}"
done
