#!/usr/bin/env bash
# How long a prompt of some 1,500 tokens takes through four stages of three hosts on this machine, beside
# what the plan predicted. The model is the demo's with a longer context written into it: what it says
# so far out makes no sense, but costs the same. `--bin FOLDER` measures other programs than those built here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d /tmp/shoal-prefill-XXXXXX)
trap 'rm -rf "$folder"' EXIT
python3 - models/demo/shoal-demo-q8_0.gguf "$folder/long.gguf" <<'PYTHON'
import pathlib, struct, sys
model = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
key = b"llama.context_length" + struct.pack("<I", 4)  # A key and its type, uint32; its value follows.
at = model.index(key) + len(key)
assert struct.unpack_from("<I", model, at) == (512,)
struct.pack_into("<I", model, at, 4096)
pathlib.Path(sys.argv[2]).write_bytes(model)
PYTHON
prompt=$(python3 -c 'print("And the king said unto the people, Hear me. " * 110)')
echo "a long prompt through four stages, load $(cut -d' ' -f1 /proc/loadavg):"
tools/demo --json --cpu-only --model "$folder/long.gguf" --prompt "$prompt" --max-tokens 12 --kill-at 4 \
  --temperature 0 "$@" 2>/dev/null |
  python3 -c 'import json, sys
answer = json.load(sys.stdin)
figures = answer.get("figures")
print("  prefill %d ms over %d stages" % (answer["prefill_ms"], len(answer["stages"])) +
      (", in blocks of %d rows; predicted %.0f ms" % (figures["block_rows"], figures["predicted"]["prefill_ms"])
       if figures else ""))'
