"""The adapter as a program that plumbline gate runs: --exec, once per case, or --protocol, JSON lines."""

import json
import os
import sys

import plumbline_dump

from .problem import LayoutError, Problem

# The two fakes test the way between the program and Plumbline; no model sees them.
FAKES = {(1, 2, 3, 4, 5): 0, (5, 4, 3, 2, 1): 1}
FAKE_TEXT = "plumbline smoke: "


def fake(ids, text):
    """0 for the fake that is answered all right, 1 for the one that is answered all wrong, None for a prompt."""
    return FAKES.get(tuple(ids)) if text.startswith(FAKE_TEXT) else None


def answer_fake(layers, logits, text, ids, wrong):
    rows = [[float(i + wrong) for i in ids], [float(-i + wrong) for i in ids]]
    plumbline_dump.f32_layers(layers, text, rows)
    plumbline_dump.f32_logits(logits, rows[:1])


def write_case(folder, name, text, ids, captured, /, **more):
    """The files of a case; NAME.json last, since without it the case counts as unfinished."""
    at = os.path.join(folder, name)
    plumbline_dump.f32_layers(at + ".layers.bin", text, captured.rows)
    if captured.logits:
        plumbline_dump.f32_logits(at + ".logits.bin", captured.logits)
        more["output_ids"] = captured.output_ids
    if captured.probes:
        plumbline_dump.probes(at + ".probes.safetensors", captured.probes)
    plumbline_dump.case(at + ".json", text, ids, **{k: v for k, v in more.items() if v is not None})


def read_ids(path):
    with open(path, encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def serve(lines, say, declaration, run):
    """Answers requests until the lines end. run(request) writes the dumps of one case."""
    for line in lines:
        if not line.strip():
            continue
        case = {}
        try:
            request = json.loads(line)
            if "plumbline" in request:
                say(dict(declaration, plumbline=1, smoke=True))
                continue
            case = {"case": request["case"]}
            wrong = fake(request["token_ids"], request["text"])
            if wrong is not None:
                out = request["out"]
                answer_fake(out["layers"], out["logits"], request["text"], request["token_ids"], wrong)
            else:
                run(request)
            say(dict(case, ok=True))
        except LayoutError as e:
            say(dict(case, unsupported=str(e)))
        except Problem as e:
            say(dict(case, error=str(e)))
        except Exception as e:  # the next case may go well
            say(dict(case, error=repr(e)))


def own_stdout():
    """Standard output for answers alone: what libraries print, from C too, goes to standard error."""
    mine = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def say(answer):
        mine.write(json.dumps(answer) + "\n")
        mine.flush()

    return say
