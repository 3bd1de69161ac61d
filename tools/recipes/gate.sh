#!/bin/sh
# gate.sh PLUMBLINE MODEL DUMPS: one shard of a gate, as Bazel starts it.
set -eu
exec "$1" gate --quiet --model "$2" --candidate "$3" --report "$TEST_UNDECLARED_OUTPUTS_DIR/report"
