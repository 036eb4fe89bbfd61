#!/usr/bin/env bash
# How many units a second 200 hosts lease and hand in over TLS, end to end against a shoal-coordinator
# process on the same machine (the goal is 1,000 cycles a second), and what an idle host costs it (20 KB)
# while peers that never end their greeting are shed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
echo "200 hosts over TLS, store in ${TMPDIR:-/tmp}, load $(cut -d' ' -f1 /proc/loadavg):"
for how in "--ahead 1" "--ahead 4" "--ahead 4 --volunteers"; do
  # shellcheck disable=SC2086
  build/release/tests/wire_bench $how | python3 -c 'import json, sys
answer = json.load(sys.stdin)
print("  %s, %d units a lease: %d cycles a second; lease p50 %.0f ms, p99 %.0f; submit p50 %.0f, p99 %.0f; "
      "%.2f ms of the coordinator a cycle" % (
    "volunteers, with audits" if answer["volunteers"] else "trusted hosts", answer["ahead"],
    answer["cycles_per_second"], answer["lease_p50_ms"], answer["lease_p99_ms"], answer["submit_p50_ms"],
    answer["submit_p99_ms"], answer["coordinator_cpu_ms_per_cycle"]))'
done
ulimit -n "$(ulimit -Hn)"
if (($(ulimit -n) < 6000)); then
  echo "  idle hosts: not measured, as this machine opens at most $(ulimit -n) files"
  exit 0
fi
# Enrolling so many hosts waits for the disk; what is measured does not.
[[ -d /dev/shm ]] && export TMPDIR=/dev/shm
build/release/tests/wire_bench --idle 5000 --slow 200 | python3 -c 'import json, sys
answer = json.load(sys.stdin)
print("  %d idle hosts: %.1f KB each (%d MB in all), %d of them heard; %d of %d peers without an end shed after %.0f s" % (
    answer["idle_hosts"], answer["kb_per_idle_host"], answer["coordinator_mb"], answer["heard"],
    answer["slow_shed"], answer["slow_peers"], answer["shed_seconds"]))'
