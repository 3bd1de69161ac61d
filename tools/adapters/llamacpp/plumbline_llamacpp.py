#!/usr/bin/env python3
"""llama.cpp under test: a GGUF's dumps in Plumbline's formats.

The model runs one token per decode with a KV cache, on the CPU; the residual
stream is read from the graph while it is computed."""

import argparse
import json
import os
import sys

sys.dont_write_bytecode = True  # a checkout stays as it is
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "python")]

import describe
import places
import plumbline_dump
from plumbline_adapter import packages, prompt_list
from plumbline_adapter.folder import NewFolder
from plumbline_adapter.problem import Problem
from unsupported import Unsupported

EXAMPLES = """examples:
  a dump folder, for plumbline gate --model X.gguf --candidate dumps:
    %(prog)s --model X.gguf --prompts prompts.jsonl --out dumps
  the same with every prompt position, and nothing decoded:
    %(prog)s --model X.gguf --prompts prompts.jsonl --out dumps --overwrite --probes --max-new 0
  a program under test, run once per prompt:
    plumbline gate --model X.gguf --exec 'python3 %(prog)s --model X.gguf
      --ids-file {ids_file} --text-file {text_file} --dir {dir}'
  or once for all prompts:
    plumbline gate --model X.gguf --protocol --exec 'python3 %(prog)s --model X.gguf --protocol'
  does a q8_0 cache conform? what would a wrong RoPE base look like?
    %(prog)s --model X.gguf --prompts prompts.jsonl --out dumps --kv-type-k q8_0
    %(prog)s --model X.gguf --prompts prompts.jsonl --out dumps --rope-freq-base 10000

a line of --prompts: {"name": "a", "prompt": "Hello!"}; also "system" (null: none),
"text" (templated already), "token_ids", "stop", "max_new".
The folder appears as a whole, when the last prompt is done.
parts for --probes: """ + ",".join(places.PARTS) + """

exit codes: 0 done; 1 nothing was written; 2 a flag is wrong; 77 (with --dir) llama.cpp or this GGUF can't do it"""

UNSUPPORTED = 77
ROPE = ("rope_freq_base", "rope_freq_scale", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow", "yarn_orig_ctx")
QWEN = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."  # of plumbline capture


def options(argv):
    p = argparse.ArgumentParser(
        prog="plumbline_llamacpp.py", description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--model", required=True, metavar="FILE", help="the GGUF")
    way = p.add_argument_group("what to run")
    way.add_argument("--prompts", metavar="FILE", help="JSONL list of prompts")
    way.add_argument("--out", metavar="FOLDER", help="where the dumps of --prompts go, new or empty")
    way.add_argument("--overwrite", action="store_true", help="replace a dump folder")
    way.add_argument("--text-file", metavar="FILE", help="one templated prompt")
    way.add_argument("--ids-file", metavar="FILE", help="its token ids, one per line; without it llama.cpp's tokenizer makes them")
    way.add_argument("--dir", metavar="FOLDER", help="where its dumps go, as case.*")
    way.add_argument("--protocol", action="store_true", help="JSON lines on standard input and output")
    way.add_argument("--system", default=QWEN, metavar="TEXT", help="system prompt of lines without their own")
    way.add_argument("--max-new", type=int, default=4, metavar="N", help="tokens to decode; 0: no logits (default %(default)s)")
    way.add_argument("--probes", nargs="?", const=",".join(places.DEFAULT_PARTS), default="", metavar="PARTS",
                     help="dump every prompt position at these parts (default %(const)s)")  # fmt: skip
    way.add_argument("--probe-layers", type=int, metavar="N", help="of the first N layers only (default: of all)")
    how = p.add_argument_group("how llama.cpp computes")
    how.add_argument("--ctx", type=int, default=2048, metavar="N", help="size of the context (default %(default)s)")
    how.add_argument("--threads", type=int, default=1, metavar="N", help="more serve large models, on cores that are free (default %(default)s)")
    how.add_argument("--kv-type-k", choices=describe.KV_TYPES, default="f16", help="number format of the keys in the cache (default %(default)s)")
    how.add_argument("--kv-type-v", choices=describe.KV_TYPES, default="f16", help="of the values")
    how.add_argument("--flash-attn", action="store_true", help="attention in one operation")
    for key in ROPE:
        how.add_argument("--" + key.replace("_", "-"), type=int if key == "yarn_orig_ctx" else float, metavar="X",
                         help="against the GGUF's own")  # fmt: skip
    o = p.parse_args(argv)
    ways = [bool(o.prompts or o.out), bool(o.text_file or o.ids_file or o.dir), o.protocol]
    if sum(ways) != 1 or bool(o.prompts) != bool(o.out) or bool(o.text_file) != bool(o.dir):
        p.error("want one of: --prompts with --out; --text-file with --dir, perhaps --ids-file; --protocol")
    if o.probe_layers is not None and (o.probe_layers < 1 or not o.probes):
        p.error("--probe-layers: want 1 or more, and --probes")
    if o.max_new < 0 or o.ctx < 1 or o.threads < 1:
        p.error("--max-new, --ctx, --threads: want no negative number, and no context or threads of none")
    o.parts = [part for part in o.probes.split(",") if part]
    o.rope = {key: getattr(o, key) for key in ROPE if getattr(o, key) is not None}
    try:
        places.probes(o.parts, 1)
    except ValueError as e:
        p.error(str(e))
    return o


class Run:
    """The model, opened once, and what becomes of a case."""

    def __init__(self, o):
        packages.need(["llama_cpp", "jinja2"], os.path.join(HERE, "requirements.txt"))
        import decode  # with these, which --help can do without

        self.o = o
        self.model = decode.Model(
            o.model, ctx=o.ctx, threads=o.threads, flash_attn=o.flash_attn, rope=o.rope,
            kv_type_k=describe.KV_TYPES[o.kv_type_k], kv_type_v=describe.KV_TYPES[o.kv_type_v],
        )  # fmt: skip
        self.version = decode.llama_cpp.__version__

    def engine(self):
        parts = list(self.o.parts)
        if parts and self.o.probe_layers:
            parts[-1] += "; layers 0 to %d" % (min(self.model.layers, self.o.probe_layers) - 1)
        return describe.engine(self.version, os.path.basename(self.o.model), self.model.file_type, self.o, parts)

    def write_engine(self, folder):
        plumbline_dump.engine(os.path.join(folder, "engine.json"), "llama.cpp", **self.engine())

    def probes(self):
        """What the flags ask for."""
        return places.probes(self.o.parts, min(self.model.layers, self.o.probe_layers or self.model.layers))

    def case(self, folder, name, text, token_ids, max_new, stop, probes, /, **more):
        if max_new == 0:
            stop = None
        elif stop is None:
            stop = self.model.stops()
        rows, dumped, output, logits = self.model.run(token_ids, max_new, stop or (), probes)
        base = os.path.join(folder, name)
        plumbline_dump.f32_layers(base + ".layers.bin", text, rows)
        if logits:
            plumbline_dump.f32_logits(base + ".logits.bin", logits)
            more.update(output_ids=output, decoded=self.model.decoded(output), stop=stop)
        if probes:
            plumbline_dump.probes(base + ".probes.safetensors", dumped)
        plumbline_dump.case(base + ".json", text, token_ids, **more)

    def folder(self, new):
        """Writes the dump folder that new makes; whatever can be wrong with a prompt is found before the first one runs."""
        listed, probes = self.prompts(), self.probes()
        with new as temp:
            self.write_engine(temp)
            for p in listed:
                more = {} if p.prompt is None else {"prompt": p.prompt}
                if p.system is not prompt_list.ABSENT:
                    more["system"] = p.system
                self.case(temp, p.name, p.text, p.token_ids, p.max_new, p.stop, probes, **{**p.extra, **more})
                print("%s: %d tokens" % (p.name, len(p.token_ids)), file=sys.stderr)

    def prompts(self):
        o, probes = self.o, self.probes()
        listed = prompt_list.read(o.prompts)
        prompt_list.complete(listed, o.prompts, self.model.template, self.model.encode, o.system)
        for p in listed:
            p.max_new = o.max_new if p.max_new is None else p.max_new
            try:
                self.model.check(p.token_ids, p.max_new, probes)
            except Problem as e:
                raise Problem("%s:%d: %s" % (o.prompts, p.line, e)) from e
        return listed

    def one(self):
        with open(self.o.text_file, encoding="utf-8", newline="") as f:
            text = f.read()
        ids = None
        if self.o.ids_file:
            with open(self.o.ids_file, encoding="ascii") as f:
                ids = [int(line) for line in f.read().split()]
        self.write_engine(self.o.dir)
        if text.startswith("plumbline smoke:"):
            smoke(os.path.join(self.o.dir, "case.layers.bin"), os.path.join(self.o.dir, "case.logits.bin"), text, ids)
            return
        self.case(self.o.dir, "case", text, ids or self.model.encode(text), self.o.max_new, None,
                  self.probes())  # fmt: skip

    def protocol(self):
        for line in sys.stdin:
            request, name = json.loads(line), None
            try:
                if "plumbline" in request:
                    say(plumbline=1, name="llama.cpp", smoke=True,
                        **{**self.engine(), "probes": self.probes() or self.model.offered()})  # fmt: skip
                    continue
                name = request["case"]
                if name.startswith("plumbline-smoke"):
                    smoke(request["out"]["layers"], request["out"]["logits"], request["text"], request["token_ids"])
                else:
                    self.asked(request)
                say(ok=True, case=name)
            except Unsupported as e:
                say(unsupported=str(e))
            except Exception as e:  # the next case may go well
                say(error=told(e))

    def asked(self, r):
        known = self.model.offered()
        unknown = [p for p in r["probes"] if p not in known]
        if unknown:
            raise Unsupported("probe %s" % unknown[0])
        probes = self.probes() or r["probes"]  # the flags' were declared, and the gate asks for some of them
        self.case(r["out"]["dir"], "case", r["text"], r["token_ids"], r["decode_steps"] or self.o.max_new, r["stop"], probes)


def told(e):
    return str(e) if isinstance(e, (Problem, ValueError, OSError, RuntimeError)) else repr(e)


def say(**answer):
    print(json.dumps(answer), flush=True)


def smoke(layers, logits, text, ids):
    """The answer to the two fakes of plumbline selftest, which test the way and not the engine."""
    wrong = text != "plumbline smoke: right"  # every value is one more than it should be
    rows = [[i + wrong for i in ids], [-i + wrong for i in ids]]
    plumbline_dump.f32_layers(layers, text, rows)
    plumbline_dump.f32_logits(logits, rows[:1])


def main(argv):
    o = options(argv)
    try:
        new = NewFolder(o.out, o.overwrite) if o.prompts else None  # before the work
        run = Run(o)
        run.folder(new) if o.prompts else run.protocol() if o.protocol else run.one()
    except Exception as e:
        print("plumbline_llamacpp: %s" % told(e), file=sys.stderr)
        return UNSUPPORTED if o.dir and isinstance(e, Unsupported) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
