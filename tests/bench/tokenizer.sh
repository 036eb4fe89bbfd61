#!/usr/bin/env bash
# How many megabytes of this repository's own text a second become tokens and text again, by real vocabularies
# (tests/tokenizer/oracle/fetch brings them), and how many Hugging Face's own library makes, for orientation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
oracle=build/oracles/tokenizer
if [[ ! -f $oracle/complete ]]; then
  echo "tokenizer: not measured, as tests/tokenizer/oracle/fetch has brought no vocabularies"
  exit 0
fi
text=$(mktemp)
trap 'rm -f "$text"' EXIT
git ls-files -z 'docs/*.md' 'ui/i18n/*' 'coordinator/*.cpp' | xargs -0 cat >"$text"
echo "tokenizer, one thread, $(wc -c <"$text") bytes, load $(cut -d' ' -f1 /proc/loadavg):"
for model in qwen3 llama3_1 gemma3 deepseek_v3 gptoss; do
  ours=$(build/release/tests/tokenizer_bench "$oracle/$model" "$text")
  theirs=$(node tests/bench/tokenizer_speed.mjs "$oracle/engine" "$oracle/$model" "$text")
  python3 -c 'import json, sys
model, ours, theirs = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
same = "as many tokens" if ours["tokens"] == theirs["tokens"] else "OTHER TOKENS"
print("  %-12s encode %.1f MB/s (Hugging Face %.1f, %s), decode %.0f MB/s, loaded in %.1f s" % (
    model, ours["encode_mb_per_second"], theirs["encode_mb_per_second"], same, ours["decode_mb_per_second"],
    ours["load_seconds"]))' "$model" "$ours" "$theirs"
done
