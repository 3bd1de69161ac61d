"""Dumps a decoder-only model of Hugging Face transformers, quantised or not, for plumbline gate.

  python plumbline_transformers.py --model DIR --prompts prompts.jsonl --out dumps
  plumbline gate --model DIR --candidate dumps
"""

import argparse
import os
import sys

sys.dont_write_bytecode = True  # a checkout stays as it is

from plumbline_hf import declare, loading, probe_names, program  # noqa: E402, I001  (first: it says where the others are)
from plumbline_hf.problem import LayoutError, Problem  # noqa: E402
from plumbline_adapter import folder, prompt_list  # noqa: E402
import plumbline_dump  # noqa: E402

SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."  # as plumbline capture
UNSUPPORTED = 77

HELP = """\
Runs a model one token a call, with its own KV cache, and writes what it computes as a dump folder: for each prompt
NAME.json, NAME.layers.bin (the residual stream at the last prompt token, raw, taken by hooks in front of the final norm)
and NAME.logits.bin (a greedy decode); with --probes NAME.probes.safetensors too, at every position but the last output
token's. The folder appears as a whole, when the last case is done.

A line of FILE is {"name": …, "prompt": …}, or brings the templated "text" itself, and "token_ids"; "system", "stop"
and "max_new" are the line's own. plumbline capture reads the same list.
"""

EXAMPLES = """\
examples:
  # does the int8 model still compute the checkpoint?
  python plumbline_transformers.py --model ./qwen2 --quantize torchao-int8 --prompts p.jsonl --out dumps
  plumbline gate --model ./qwen2 --candidate dumps

  # a richer dump: every place inside the model, or the residual stream alone
  python plumbline_transformers.py --model ./qwen2 --prompts p.jsonl --out dumps --overwrite --probes all
  python plumbline_transformers.py --model ./qwen2 --prompts p.jsonl --out dumps --overwrite --probes residual

  # without a folder: run by the gate, once per case, or as one process
  plumbline gate --model ./qwen2 --golden ref --exec \\
    'python plumbline_transformers.py --model ./qwen2 --ids-file {ids_file} --text-file {text_file} --dir {dir}'
  plumbline gate --model ./qwen2 --prompts p.jsonl --protocol --exec \\
    'python plumbline_transformers.py --model ./qwen2 --protocol'

exit codes: 0 done; 1 nothing was written; 2 a flag is wrong; 77 (with --dir) the model's layout is not supported
"""


def arguments(argv):
    p = argparse.ArgumentParser(
        prog="plumbline_transformers.py", description=HELP, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    p.add_argument("--model", required=True, metavar="DIR_OR_ID", help="folder of a checkpoint, or its id on the hub")
    p.add_argument("--prompts", metavar="FILE", help="the prompts, one JSON object a line")
    p.add_argument("--out", metavar="FOLDER", help="the dump folder to write, new or empty")
    p.add_argument("--overwrite", action="store_true", help="replace a dump folder")
    p.add_argument("--probes", default="", metavar="LIST", help="places inside the model to write too, comma separated: all, "
                   "residual, or names such as embed,blocks.0.q,blocks.*.attn_out,final_norm (default: none; with --protocol what "
                   "the gate asks for)")  # fmt: skip
    p.add_argument("--max-new", type=int, default=8, metavar="N", help="most tokens to decode (default 8; 0 decodes nothing)")
    p.add_argument("--stop", metavar="IDS", help="ids that end a decode, comma separated (default: the model's eos_token_id)")
    p.add_argument("--system", default=SYSTEM, help="system prompt of a line without its own (default: Qwen2.5's)")
    p.add_argument("--dtype", choices=loading.DTYPES, default="float32", help="arithmetic of the model (default float32)")
    p.add_argument("--quantize", choices=loading.QUANTIZE, default="none", help="quantise the linears first: torch.ao's "
                   "quantize_dynamic, or torchao's Int8DynamicActivationInt8WeightConfig")  # fmt: skip
    p.add_argument("--quantized-engine", metavar="NAME", help="torch's kernels for dynamic-int8, e.g. qnnpack (default: torch's)")
    p.add_argument("--device", default="cpu", help="torch device (default cpu)")
    p.add_argument("--protocol", action="store_true", help="speak JSON lines, for plumbline gate --protocol --exec")
    p.add_argument("--ids-file", metavar="FILE", help="for --exec: the ids of one prompt, one per line")
    p.add_argument("--text-file", metavar="FILE", help="for --exec: its templated text")
    p.add_argument("--dir", metavar="DIR", help="for --exec: where the answer goes")
    a = p.parse_args(argv)
    modes = {"--prompts and --out": (a.prompts, a.out), "--ids-file, --text-file and --dir": (a.ids_file, a.text_file, a.dir),
             "--protocol": (a.protocol or None,)}  # fmt: skip
    used = [name for name, flags in modes.items() if any(f is not None for f in flags)]
    if len(used) != 1 or any(f is None for f in modes[used[0]]):
        p.error("want %s, all of one" % ", or ".join(modes))
    if a.max_new < 0:
        p.error("--max-new: got %d, want 0 or more" % a.max_new)
    if a.quantized_engine and a.quantize != "dynamic-int8":
        p.error("--quantized-engine needs --quantize dynamic-int8")
    try:
        a.stop = None if a.stop is None else [int(i) for i in a.stop.split(",") if i.strip()]
    except ValueError:
        p.error("--stop: got %r, want token ids" % a.stop)
    return a


def quiet(model):
    """No progress bars, and no network for a folder; set before transformers is loaded."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    if os.path.isdir(model):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


def tell(text):
    print("plumbline_transformers: " + text, file=sys.stderr, flush=True)


def tell_lacking(d, names):
    for names, why in (declare.not_offered({n: d.missing[n] for n in names}, d.layers) or {}).items():
        tell("not offered: %s: %s" % (names, why))


class Side:
    """The model, loaded at the first prompt, and what it declares."""

    def __init__(self, a):
        self.a, self.words, self._dumper = a, loading.Words(a.model), None
        self.levels, self.quantized = None, {}

    def dumper(self):
        if self._dumper is None:
            a = self.a
            loading.need(a.quantize)
            from plumbline_hf.capture import Dumper

            model = loading.model(a.model, a.dtype, a.device)
            self.levels, self.quantized = loading.quantize(model, a.quantize, a.quantized_engine)
            self._dumper = Dumper(model)
            for note in self._dumper.notes:
                tell(note)
        return self._dumper

    def levels_of_engine(self):
        """For a declaration in front of the model."""
        if self.levels is None and self.a.quantize == "dynamic-int8":
            loading.need()
            import torch

            if self.a.quantized_engine in torch.backends.quantized.supported_engines:
                torch.backends.quantized.engine = self.a.quantized_engine
            self.levels = loading.activation_levels()
        return self.levels

    def declaration(self, **more):
        a = self.a
        arithmetic = declare.arithmetic(a.dtype, a.quantize, self.levels_of_engine(), declare.checkpoint_config(a.model))
        return declare.describe(a.model, declare.installed(), arithmetic, name=declare.name(arithmetic), **more)

    def declared_probes(self):
        """For the handshake, in front of the model: the names that it is asked for. What the model turns out to lack is left
        out of the answers."""
        layers = declare.layers(declare.checkpoint_config(self.a.model))
        if layers is None and not os.path.isdir(self.a.model):
            layers = loading.layers(self.a.model)
        if layers is None:
            return []
        names = probe_names.parse(self.a.probes, layers)[0] if self.a.probes else probe_names.standard(layers)
        return [n for n in names if n.rpartition(".")[2] not in probe_names.ROUTER]

    def engine_json(self, at, probes=()):
        d = self._dumper
        more = {"device": self.a.device, "adapter": "plumbline_transformers.py", "quantized": self.quantized or None}
        if d is not None:
            more["probes"] = declare.probes(probes, d.layers)
            more["not_offered"] = declare.not_offered(d.missing, d.layers)
            more["notes"] = d.notes or None
        plumbline_dump.engine(os.path.join(at, "engine.json"), **self.declaration(**more))

    def case(self, at, name, text, ids, stop=None, max_new=None, probes=None, more=()):
        """Runs one prompt and writes its files; the probes that it wrote."""
        d, a = self.dumper(), self.a
        stop = stop if stop is not None else a.stop if a.stop is not None else d.stop
        probes = d.wanted(a.probes if probes is None else probes)
        captured = d.run(ids, stop, a.max_new if max_new is None else max_new, probes)
        decoded = self.words.decoded(captured.output_ids, stop) if captured.output_ids else None
        program.write_case(at, name, text, ids, captured, **{**dict(more), "stop": stop, "decoded": decoded})
        return captured


def whole_folder(a):
    prompts = prompt_list.read(a.prompts)
    new = folder.NewFolder(a.out, a.overwrite)  # before the work
    loading.need(a.quantize)
    side = Side(a)
    prompt_list.complete(prompts, a.prompts, side.words.text, side.words.ids, a.system)
    d = side.dumper()
    probes = d.wanted(a.probes)
    for p in prompts:
        try:
            d.check(p.token_ids, a.max_new if p.max_new is None else p.max_new)
        except Problem as e:
            raise Problem("%s:%d: %s" % (a.prompts, p.line, e)) from e
    if probes or a.probes:
        tell_lacking(d, [n for n in d.missing if n.rpartition(".")[2] not in probe_names.ROUTER])
    with new as temp:
        side.engine_json(temp, probes)
        for p in prompts:
            more = dict(p.extra)
            if p.prompt is not None:
                more.update(prompt=p.prompt)
            if p.system is not prompt_list.ABSENT:
                more.update(system=p.system)
            c = side.case(temp, p.name, p.text, p.token_ids, stop=p.stop, max_new=p.max_new, more=more)
            print("%s: %d rows, %d tokens, output_ids %s%s" % (
                p.name, len(c.rows), len(p.token_ids), " ".join(map(str, c.output_ids)) or "none",
                ", %d probes" % len(c.probes) if c.probes else ""), flush=True)  # fmt: skip


def one_case(a):
    ids = program.read_ids(a.ids_file)
    with open(a.text_file, encoding="utf-8", newline="") as f:
        text = f.read()
    side, at = Side(a), os.path.join(a.dir, "case")
    wrong = program.fake(ids, text)
    if wrong is not None:
        program.answer_fake(at + ".layers.bin", at + ".logits.bin", text, ids, wrong)
        side.engine_json(a.dir)
    else:
        c = side.case(a.dir, "case", text, ids)
        side.engine_json(a.dir, list(c.probes))


def protocol(a):
    say, side = program.own_stdout(), Side(a)

    def run(request):
        out = request["out"]
        side.case(out["dir"], "case", request["text"], request["token_ids"], stop=request.get("stop") or None,
                  max_new=request.get("decode_steps") or None, probes=offered(request.get("probes")))  # fmt: skip

    told = set()

    def offered(names):
        """Of what is asked for, what there is; None leaves it to the flags, which the handshake declared."""
        if not names or a.probes:
            return None
        d = side.dumper()
        lacking = [n for n in names if n in d.missing and n not in told]
        told.update(lacking)
        tell_lacking(d, lacking)
        return ",".join(n for n in names if n not in d.missing)

    program.serve(sys.stdin, say, side.declaration(probes=side.declared_probes()), run)


def main(argv=None):
    a = arguments(argv)
    quiet(a.model)
    try:
        if a.model.startswith((".", "/", "~")) and not os.path.isdir(a.model):  # no id on the hub begins so
            raise Problem("--model: %s: got no such folder" % a.model)
        (whole_folder if a.prompts else one_case if a.dir else protocol)(a)
    except LayoutError as e:
        tell(str(e))
        return UNSUPPORTED if a.dir else 1
    except (Problem, OSError) as e:
        tell(str(e))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
