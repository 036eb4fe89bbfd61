#!/usr/bin/env bash
# How long a stream pauses when a host is killed at 1,000 tokens of history. The model is the demo's with
# a longer context written into it: what it says so far out makes no sense, but costs the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d /tmp/shoal-failover-XXXXXX)
trap 'rm -rf "$folder"' EXIT
python3 - models/demo/shoal-demo-q8_0.gguf "$folder/long.gguf" <<'PYTHON'
import pathlib, struct, sys
model = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
key = b"llama.context_length" + struct.pack("<I", 4)  # A key and its type, uint32; its value follows.
at = model.index(key) + len(key)
assert struct.unpack_from("<I", model, at) == (512,)
struct.pack_into("<I", model, at, 2048)
pathlib.Path(sys.argv[2]).write_bytes(model)
PYTHON
echo "failover at 1,000 tokens of history, load $(cut -d' ' -f1 /proc/loadavg):"
tools/demo --json --model "$folder/long.gguf" --max-tokens 1040 --kill-at 1000 --temperature 0 "$@" 2>/dev/null |
  python3 -c 'import json, sys
answer = json.load(sys.stdin)
print("  gap %d ms, text identical: %s, %.0f tokens/s with 4 stages" % (
    answer["failover_gap_ms"], answer["failover_identical"], answer["tokens_per_second"]))'
