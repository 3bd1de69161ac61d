"""A program under test, as plumbline gate --protocol runs it, once for all cases:

  plumbline selftest --protocol --exec 'python3 example.py'

An engine would run where smoke() is called; as it stands, it answers the two
fakes of plumbline selftest, which test the way and not the engine."""
import json
import sys

import plumbline_dump


def say(**answer):
    print(json.dumps(answer), flush=True)


def smoke(request):
    wrong = request["case"] == "plumbline-smoke-wrong"  # every value is one more than it should be
    ids = request["token_ids"]
    codes = [[i + wrong for i in ids], [-i + wrong for i in ids]]
    one = (1073741824, -30)  # 1073741824 * 2**-30
    plumbline_dump.int8_layers(request["out"]["layers"], request["text"], [one, one], codes)
    plumbline_dump.i32_logits(request["out"]["logits"], codes[:1])


for line in sys.stdin:
    request = json.loads(line)
    try:
        if "plumbline" in request:
            say(plumbline=1, name="example.py", layers="int8-scaled", logits="i32", smoke=True)
        elif not request["case"].startswith("plumbline-smoke"):
            say(unsupported="only the fakes are answered")
        else:
            smoke(request)
            say(ok=True, case=request["case"])
    except Exception as e:  # the next case may go well
        say(error=repr(e))
