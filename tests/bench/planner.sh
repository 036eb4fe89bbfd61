#!/usr/bin/env bash
# How long the session planner takes for 200 devices and 80 fragments; the goal is 100 ms.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
echo "planner, 200 devices x 80 fragments, load $(cut -d' ' -f1 /proc/loadavg):"
build/release/tests/planner_bench | python3 -c 'import json, sys
answer = json.load(sys.stdin)
print("  latency %.1f ms (%d stages), anchored %.1f ms (%d), throughput %.1f ms (%d), explanation %.1f ms" % (
    answer["latency_ms"], answer["latency_stages"], answer["anchored_ms"], answer["anchored_stages"],
    answer["throughput_ms"], answer["throughput_stages"], answer["explanation_ms"]))'
