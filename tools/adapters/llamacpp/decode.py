"""llama.cpp, through the C API that llama-cpp-python binds: one token per
decode, with the tensors of the graph read as they are computed."""

import array
import ctypes
import os

import jinja2.sandbox
import llama_cpp

import places
from plumbline_adapter.problem import Problem
from unsupported import Unsupported

_lib = llama_cpp.llama_cpp._lib  # finds ggml's functions too, which the package doesn't bind
for _name, _result, _arguments in (
    ("ggml_get_name", ctypes.c_char_p, [ctypes.c_void_p]),
    ("ggml_op_desc", ctypes.c_char_p, [ctypes.c_void_p]),
    ("ggml_nelements", ctypes.c_int64, [ctypes.c_void_p]),
    ("ggml_element_size", ctypes.c_size_t, [ctypes.c_void_p]),
    ("ggml_is_contiguous", ctypes.c_bool, [ctypes.c_void_p]),
    ("ggml_backend_tensor_get", None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]),
):
    _function = getattr(_lib, _name)
    _function.restype, _function.argtypes = _result, _arguments

_ERROR = 4  # GGML_LOG_LEVEL_ERROR


@llama_cpp.llama_log_callback
def _log(level, text, _):
    if level == _ERROR:
        os.write(2, text)


class Model:
    """A GGUF with a context. options: ctx, threads, kv_type_k and kv_type_v (ggml's
    numbers), flash_attn, rope (members of llama_context_params)."""

    def __init__(self, path, ctx, threads, kv_type_k, kv_type_v, flash_attn, rope):
        llama_cpp.llama_log_set(_log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        p = llama_cpp.llama_model_default_params()
        p.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), p)
        if not self._model:
            raise ValueError("%s: llama.cpp can't load it" % path)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self.layers = llama_cpp.llama_model_n_layer(self._model)
        self.hidden = llama_cpp.llama_model_n_embd(self._model)
        self.architecture = self.metadata("general.architecture")
        self.file_type = llama_cpp.llama_model_ftype(self._model)
        self.ctx = ctx
        self._capture = _Capture()
        c = llama_cpp.llama_context_default_params()
        # A batch of one token: llama.cpp then computes every layer of every
        # token, and each of them with the KV cache of those before.
        c.n_ctx, c.n_batch, c.n_ubatch, c.n_seq_max = ctx, 1, 1, 1
        c.n_threads = c.n_threads_batch = threads
        c.type_k, c.type_v = kv_type_k, kv_type_v
        c.flash_attn_type = int(flash_attn)
        for key, value in rope.items():
            setattr(c, key, value)
        c.cb_eval = self._capture.callback
        self._context = llama_cpp.llama_init_from_model(self._model, c)
        if not self._context:
            raise ValueError("llama.cpp makes no context with these options; a quantised V cache needs --flash-attn")
        self._batch = llama_cpp.llama_batch_init(1, 0, 1)

    def metadata(self, key):
        """A value of the GGUF's metadata as text, or None."""
        buffer = ctypes.create_string_buffer(1 << 16)
        n = llama_cpp.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return None if n < 0 else buffer.value.decode("utf-8", "replace")

    def order(self, probe):
        """What brings a row of the probe to Hugging Face's order of channels; None where it has it."""
        if not places.roped(probe):
            return None
        kind = llama_cpp.llama_model_rope_type(self._model)
        if kind == llama_cpp.LLAMA_ROPE_TYPE_NEOX:
            return None
        if self.architecture != "llama":
            raise Unsupported("%s: how the GGUF of a %s orders it is not known here" % (probe, self.architecture))
        head_dim = self.metadata("llama.attention.key_length")
        head_dim = int(head_dim) if head_dim else self.hidden // llama_cpp.llama_model_n_head(self._model)
        return lambda row: array.array("f", places.half_split(row, head_dim))

    def offered(self):
        """The places whose order of channels is known; a graph may still lack one."""
        out = []
        for probe in places.probes(places.PARTS, self.layers):
            try:
                self.order(probe)
            except Unsupported:
                continue
            out.append(probe)
        return out

    def template(self, system, prompt):
        """The text that the GGUF's own chat template makes."""
        source = llama_cpp.llama_model_chat_template(self._model, None)
        if not source:
            raise Unsupported("the GGUF has no chat template; bring the templated text")
        env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)

        def refuse(message):
            raise Unsupported("the chat template refuses: %s" % message)

        env.globals["raise_exception"] = refuse
        messages = [] if system is None else [{"role": "system", "content": system}]
        messages.append({"role": "user", "content": prompt})
        try:
            return env.from_string(source.decode("utf-8")).render(
                messages=messages,
                add_generation_prompt=True,
                bos_token=self._special(llama_cpp.llama_vocab_bos(self._vocab)),
                eos_token=self._special(llama_cpp.llama_vocab_eos(self._vocab)),
            )
        except jinja2.TemplateError as e:
            raise Unsupported("the chat template: %s" % e) from e

    def _special(self, token):
        return "" if token < 0 else llama_cpp.llama_vocab_get_text(self._vocab, token).decode("utf-8")

    def encode(self, text):
        """The ids of a templated text: special tokens are read, none is added."""
        data = text.encode("utf-8")
        out = (llama_cpp.llama_token * (len(data) + 8))()
        n = llama_cpp.llama_tokenize(self._vocab, data, len(data), out, len(out), False, True)
        if n < 0:
            raise Problem("llama.cpp can't tokenise the text")
        return list(out[:n])

    def decoded(self, ids):
        tokens = (llama_cpp.llama_token * max(1, len(ids)))(*ids)
        buffer = ctypes.create_string_buffer(256 * len(ids) + 256)
        n = llama_cpp.llama_detokenize(self._vocab, tokens, len(ids), buffer, len(buffer), False, True)
        return buffer.raw[: max(0, n)].decode("utf-8", "replace")

    def stops(self):
        """The ids that end a generation, as llama.cpp sees it."""
        return [i for i in range(self.vocab_size) if llama_cpp.llama_vocab_is_eog(self._vocab, i)]

    def check(self, token_ids, max_new, probes=()):
        """Raises Unsupported for what run would refuse before it computes."""
        if not token_ids:
            raise Unsupported("a prompt of no tokens")
        for at, token in enumerate(token_ids):
            if not 0 <= token < self.vocab_size:
                raise Unsupported("token_ids[%d]: got %d, want less than %d" % (at, token, self.vocab_size))
        if len(token_ids) + max(0, max_new - 1) > self.ctx:
            raise Unsupported("%d tokens and %d new ones: more than --ctx %d" % (len(token_ids), max_new, self.ctx))
        for p in probes:
            self.order(p)

    def run(self, token_ids, max_new, stop, probes):
        """Runs the prompt and decodes greedily: the rows of a layer dump, the
        probes ({name: a row per prompt position}), the output's ids, and the row of
        logits that chose each."""
        self.check(token_ids, max_new, probes)
        orders = {p: self.order(p) for p in probes}
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        wanted_rows, dumped = places.rows(self.layers), {p: [] for p in probes}
        logits, output, rows = [], [], []
        for at, token in enumerate(token_ids):
            last = at == len(token_ids) - 1
            seen = self._step(token, at, set(probes) | set(wanted_rows if last else ()))
            for p in probes:
                dumped[p].append(orders[p](seen[p]) if orders[p] else seen[p])
            if last:
                rows = [seen[p] for p in wanted_rows]
        while len(output) < max_new:
            if output:
                self._step(output[-1], len(token_ids) + len(output) - 1, set())
            row = self._logits()
            logits.append(row)
            output.append(max(range(len(row)), key=row.__getitem__))
            if output[-1] in stop:
                break
        return rows, dumped, output, logits

    def _step(self, token, position, wanted):
        b = self._batch
        b.n_tokens, b.token[0], b.pos[0] = 1, token, position
        b.n_seq_id[0], b.seq_id[0][0], b.logits[0] = 1, 0, 1
        self._capture.begin(wanted)
        code = llama_cpp.llama_decode(self._context, b)
        seen = self._capture.end()
        if code:
            raise RuntimeError("llama_decode: code %d at position %d" % (code, position))
        missing = sorted(wanted - seen.keys())
        if missing:
            raise Unsupported("the graph of a %s has no %s" % (self.architecture, ", ".join(missing[:3])))
        for p in wanted:
            width = self.vocab_size if p == "logits" else self.hidden
            if places.part(p) in ("embed", "resid_mid", "resid_post", "final_norm", "logits") and len(seen[p]) != width:
                raise RuntimeError("%s at position %d: got %d values, want %d" % (p, position, len(seen[p]), width))
        return seen

    def _logits(self):
        row = array.array("f", bytes(4 * self.vocab_size))
        source = llama_cpp.llama_get_logits_ith(self._context, -1)
        ctypes.memmove(row.buffer_info()[0], source, 4 * self.vocab_size)
        return row


class _Capture:
    """Reads the wanted tensors of one decode."""

    def __init__(self):
        self._wanted, self._seen, self._error = frozenset(), {}, None
        self.callback = llama_cpp.ggml_backend_sched_eval_callback(self._call)

    def begin(self, wanted):
        self._wanted, self._seen, self._error = frozenset(wanted), {}, None

    def end(self):
        if self._error:
            raise self._error
        return self._seen

    def _call(self, tensor, ask, _):
        if not self._wanted:
            return not ask
        try:
            probe = places.place(_lib.ggml_get_name(tensor).decode(), _lib.ggml_op_desc(tensor).decode())
            if probe in self._wanted and not ask:
                self._seen[probe] = _read(tensor)
            return probe in self._wanted or not ask
        except Exception as e:  # it would be lost between here and llama_decode
            self._error = e
            return False


def _read(tensor):
    n = _lib.ggml_nelements(tensor)
    if _lib.ggml_element_size(tensor) != 4 or not _lib.ggml_is_contiguous(tensor):
        raise Unsupported("%s is no contiguous float32" % _lib.ggml_get_name(tensor).decode())
    row = array.array("f", bytes(4 * n))
    _lib.ggml_backend_tensor_get(tensor, row.buffer_info()[0], 0, 4 * n)
    return row
