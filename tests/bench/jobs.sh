#!/usr/bin/env bash
# How many units a second a coordinator leases, takes the results of, checks and pays, all durable, in one
# process with 200 hosts; the goal is 10,000 cycles a second.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
echo "durable cycles of units, store in ${TMPDIR:-/tmp}, load $(cut -d' ' -f1 /proc/loadavg):"
for who in "" --volunteers; do
  build/release/tests/jobs_bench $who | python3 -c 'import json, sys
answer = json.load(sys.stdin)
print("  %s: %d a second, %d hosts, %.0f s" % (
    "volunteers, with audits" if answer["volunteers"] else "trusted hosts",
    answer["cycles_per_second"], answer["hosts"], answer["seconds"]))'
done
