"""What engine.json says of a run, from what the GGUF and the options say."""

# File types as llama.h numbers them (LLAMA_FTYPE_*).
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1",
    10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M",
    16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 32: "BF16",
}  # fmt: skip

# The number formats of a cache by the names that llama.cpp's own programs have
# for them, and ggml's numbers.
KV_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}


_GUESSED = 1024  # added where the GGUF doesn't say: the type of most tensors, the norms' among them


def weights(file_type):
    """The type of most weights, by the number that llama.cpp has for the file."""
    if file_type & _GUESSED:
        return "unknown"
    return _FILE_TYPES.get(file_type, "file type %d" % file_type)


def activations(weights_type):
    """To what a linear's input is rounded on a CPU, by the weights that it meets."""
    if weights_type in ("F32", "F16", "BF16"):
        return weights_type.lower()
    if "_K" in weights_type:
        return "q8_K"  # int8 in blocks of 256
    if weights_type[:1] == "Q":
        return "int8 blocks"  # of 32
    return "unknown"


def kv_cache(k, v):
    """One format for both sides, or one side's that differs from f16."""
    if k == v:
        return k
    if v == "f16":
        return k + " K"
    if k == "f16":
        return v + " V"
    return "%s K, %s V" % (k, v)


def engine(version, model, file_type, options, probes=None):
    """The members of engine.json behind the name. options: kv_type_k, kv_type_v,
    flash_attn, threads, and rope, a dict of the overrides that are in force."""
    kind = weights(file_type)
    out = {
        "version": "llama-cpp-python " + version,
        "layers": "f32",
        "logits": "f32",
        "weights": kind,
        "activations": activations(kind),
        "kv_cache": kv_cache(options.kv_type_k, options.kv_type_v),
        "flash_attention": options.flash_attn,
        "threads": options.threads,
        "model": model,
    }
    if probes:
        out["probes"] = "f32, every prompt position: " + ",".join(probes)
    out.update(options.rope)
    return out
