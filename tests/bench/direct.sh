#!/usr/bin/env bash
# What direct paths between hosts are worth: tokens/s and bytes through the coordinator at some latencies.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/direct.py"
