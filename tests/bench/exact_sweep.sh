#!/usr/bin/env bash
# The exact functions on every f32 there is; fails if one errs by more than docs/EXACT.md promises.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
echo "exact functions, all arguments:"
build/release/tests/exact_sweep
