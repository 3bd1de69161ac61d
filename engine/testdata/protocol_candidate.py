"""A candidate for the JSON-lines protocol, as short as one gets. It answers with
dumps that were recorded beforehand; an engine would run here.

  plumbline gate --protocol --exec 'python3 protocol_candidate.py RECORDINGS' …

RECORDINGS holds engine.json, and per prompt NAME.ids (one token id per line)
and NAME.layers.bin. It serves the two fakes when it holds theirs."""
import json, pathlib, shutil, sys

recordings = pathlib.Path(sys.argv[1])
known = {tuple(map(int, p.read_text().split())): p.with_suffix(".layers.bin") for p in recordings.glob("*.ids")}


def say(**answer):
    print(json.dumps(answer), flush=True)  # a line that waits in a buffer is no answer


for line in sys.stdin:
    request = json.loads(line)
    if "plumbline" in request:
        say(plumbline=1, smoke=(1, 2, 3, 4, 5) in known, **json.loads((recordings / "engine.json").read_text()))
        continue
    layers = known.get(tuple(request["token_ids"]))
    if layers is None:
        say(unsupported="no recording of this prompt")
        continue
    shutil.copy(layers, request["out"]["layers"])
    say(ok=True, case=request["case"])
