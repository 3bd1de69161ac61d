"""Writes small.json: the trace of a small made-up model, for the tests to reproduce.

usage: python record_trace.py > small.json

Nothing is run: rows and routes are drawn by the function draw, which the tests have too. Each figure is computed here
from its formula, in float64 or in fractions, and rounded to float32 where the traced script's tensor is float32; hashes
are hashlib's, the document is json's.
"""
import hashlib
import json
import math
import statistics
import struct
import sys
from fractions import Fraction

import numpy as np

LAYERS, GATES, WIDTH, EXPERTS, TOP_K = 3, [1, 2], 5, 6, 2
FAMILIES = ["eos", "bos", "x", "period"]
CONDITIONS = [f"s{s}_{f}" for s in (0, 1) for f in FAMILIES]
EDGES = {f"system_{f}": (f"s0_{f}", f"s1_{f}") for f in FAMILIES}
EDGES.update({f"{f}_at_s{s}": (f"s{s}_eos", f"s{s}_{f}") for f in FAMILIES[1:] for s in (0, 1)})
STAGES = ["embedding", "layer_00", "layer_01", "layer_02", "final_norm"]
BOUNDARY = {"eos": 91, "bos": 90, "x": 7, "period": 8}
SOURCES = [("plain/one", "plain", "a b c d", [11, 12, 13, 14], 1), ("plain/two", "plain", "déjà vu", [15, 16, 11], 0)]
MASK = (1 << 64) - 1


def draw(key, i):
    """splitmix64 of a key and an index."""
    z = (key * 0x9E3779B97F4A7C15 + i * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def variant(condition, content, crossing):
    """Ids, content positions: a start, a system text of three tokens in s1, one token before the content."""
    system = [21, 22, 23] if condition.startswith("s1") else []
    before = [BOUNDARY[condition.split("_")[1]], *system, 24]
    return before + content + [25] * crossing + [26, 27], list(range(len(before), len(before) + len(content)))


def hidden_key(stage, condition, token, at):
    """The embedding knows the token only, the layers the condition and the place as well."""
    return token if stage == 0 else (stage * 8 + CONDITIONS.index(condition)) * 1000 + at * 31 + token


def row(key, stage):
    """Values of eight bits: bfloat16 has them."""
    return [(draw(key, i) % 255 - 127) / 32 * 2.0 ** (stage + draw(key, i + 100) % 3) for i in range(WIDTH)]


def route(layer, condition, token, at):
    """Every other content token's experts are the same under all conditions, listed the other way round in s1."""
    shared = token in (12, 14, 16)
    key = layer * 77 + token if shared else (layer * 8 + CONDITIONS.index(condition)) * 3000 + at * 17 + token
    ids = sorted(range(EXPERTS), key=lambda e: draw(key, e))[:TOP_K]
    weights = [np.float32((draw(key, 50 + e) >> 40) / 2.0**25) for e in ids]
    if shared and condition.startswith("s1"):
        return ids[::-1], weights[::-1]
    return ids, weights


def f32(x):
    return float(np.float32(x))


def sha(data):
    return hashlib.sha256(data).hexdigest()


def tensor_sha(rows, dtype):
    raw = b""
    for r in rows:
        for x in r:
            four = struct.pack("<f", x)
            raw += four[2:] if dtype == "torch.bfloat16" else four
    return sha(json.dumps({"shape": [len(rows), len(rows[0])], "dtype": dtype}, separators=(",", ":")).encode() + b"\0" + raw)


def describe(rows):
    flat = [x for r in rows for x in r]
    mean = Fraction(0) + sum(map(Fraction, flat)) / len(flat)
    square = sum(Fraction(x) ** 2 for x in flat) / len(flat)
    return {
        "shape": [len(rows), WIDTH], "dtype": "torch.bfloat16", "tensor_sha256": tensor_sha(rows, "torch.bfloat16"),
        "mean": f32(mean), "std": f32(math.sqrt(square - mean**2)), "rms": f32(math.sqrt(square)), "max_abs": max(map(abs, flat)),
    }


def compare(left, right):
    cosines, relatives, exact, most = [], [], 0, 0.0
    for l, r in zip(left, right):
        delta = [f32(b - a) for a, b in zip(l, r)]
        nl, nr = (max(math.sqrt(sum(Fraction(x) ** 2 for x in v)), 1e-12) for v in (l, r))
        cosines.append(min(1.0, max(-1.0, f32(float(sum(Fraction(a) * Fraction(b) for a, b in zip(l, r))) / nl / nr))))
        relatives.append(f32(math.sqrt(sum(Fraction(d) ** 2 for d in delta)) / nl))
        exact += l == r
        most = max(most, *map(abs, delta))
    return {
        "tokens": len(left), "exact_hidden_rows": exact, "mean_cosine_similarity": f32(statistics.fmean(cosines)),
        "min_cosine_similarity": min(cosines), "mean_relative_l2": f32(statistics.fmean(relatives)), "max_abs_delta": most,
    }


def distribution(ids, weights):
    loads = [sum(t.count(e) for t in ids) for e in range(EXPERTS)]
    weighted = [float(sum((Fraction(float(w)) for t, ws in zip(ids, weights) for i, w in zip(t, ws) if i == e), Fraction(0))) for e in range(EXPERTS)]
    total, mean = sum(loads), Fraction(sum(loads), EXPERTS)
    return {
        "tokens": len(ids), "top_k": TOP_K, "decisions": total,
        "ordered_route_sha256": sha(json.dumps(ids, separators=(",", ":")).encode()), "route_weight_sha256": tensor_sha(weights, "torch.float32"),
        "loads": loads, "weighted_loads": weighted, "unique_experts": sum(n > 0 for n in loads),
        "load_cv": math.sqrt(sum((n - mean) ** 2 for n in loads) / EXPERTS) / float(mean),
        "normalized_load_entropy": math.fsum(-n / total * math.log(n / total) for n in loads if n) / math.log(EXPERTS),
        "max_load_share": max(loads) / total,
    }


def compare_routes(left, right):
    (li, lw), (ri, rw) = left, right
    jaccard = [Fraction(len(set(a) & set(b)), len(set(a) | set(b))) for a, b in zip(li, ri)]
    tv = []
    for a, wa, b, wb in zip(li, lw, ri, rw):
        x, y = ({e: Fraction(float(w)) for e, w in zip(i, v)} for i, v in ((a, wa), (b, wb)))
        tv.append(sum(abs(x.get(e, 0) - y.get(e, 0)) for e in range(EXPERTS)) / 2)
    n = len(li) * TOP_K
    loads = [[Fraction(sum(t.count(e) for t in ids), n) for e in range(EXPERTS)] for ids in (li, ri)]
    return {
        "tokens": len(li), "ordered_topk_exact_tokens": sum(a == b for a, b in zip(li, ri)),
        "set_exact_tokens": sum(set(a) == set(b) for a, b in zip(li, ri)), "mean_set_jaccard": float(sum(jaccard) / len(li)),
        "mean_token_weighted_tv": float(sum(tv) / len(li)), "aggregate_load_tv": float(sum(abs(a - b) for a, b in zip(*loads)) / 2),
    }


def trace(source):
    ident, domain, text, content, crossing = source
    variants = {c: variant(c, content, crossing) for c in CONDITIONS}
    scopes = {c: {"target_content": p, "full_input": list(range(len(i)))} for c, (i, p) in variants.items()}
    stages, gates = {}, {}
    for s, name in enumerate(STAGES):
        rows = {c: [row(hidden_key(s, c, t, at), s) for at, t in enumerate(i)] for c, (i, _) in variants.items()}
        picked = {c: {k: [rows[c][p] for p in at] for k, at in scopes[c].items()} for c in CONDITIONS}
        stages[name] = {
            "conditions": {c: {k: describe(v) for k, v in picked[c].items()} for c in CONDITIONS},
            "target_comparisons": {e: compare(picked[l]["target_content"], picked[r]["target_content"]) for e, (l, r) in EDGES.items()},
        }
    for layer in GATES:
        routes = {c: [route(layer, c, t, at) for at, t in enumerate(i)] for c, (i, _) in variants.items()}
        picked = {c: {k: tuple(map(list, zip(*(routes[c][p] for p in at)))) for k, at in scopes[c].items()} for c in CONDITIONS}
        gates[f"layer_{layer:02d}"] = {
            "layer": layer,
            "conditions": {c: {k: distribution(*v) for k, v in picked[c].items()} for c in CONDITIONS},
            "target_comparisons": {e: compare_routes(picked[l]["target_content"], picked[r]["target_content"]) for e, (l, r) in EDGES.items()},
        }
    lengths = {c: len(i) for c, (i, _) in variants.items()}
    return {
        "id": ident, "domain": domain, "content_sha256": sha(text.encode()),
        "content_token_ids_sha256": sha(json.dumps(content, separators=(",", ":")).encode()),
        "prompt_tokens_by_condition": lengths, "batch_prompt_tokens": max(lengths.values()), "content_tokens": len(content),
        "boundary_crossing_tokens_by_condition": dict.fromkeys(CONDITIONS, crossing),
        "forward_seconds": 0.25, "peak_cuda_memory_allocated_bytes": None, "hidden_stages": stages, "router_layers": gates,
    }


def summary(sources):
    def over(block, name, edge, **how):
        rows = [s[block][name]["target_comparisons"][edge] for s in sources]
        tokens = sum(r["tokens"] for r in rows)
        out = {"sources": len(rows), "tokens": tokens}
        for key, (what, kind) in how.items():
            values = [r[what] for r in rows]
            if kind == "tokens":
                out[key] = float(sum(Fraction(v) * r["tokens"] for v, r in zip(values, rows)) / tokens)
            elif kind == "sources":
                out[key] = statistics.mean(values)
            else:
                out[key] = kind(values)
        return out

    content = sum(s["content_tokens"] for s in sources)
    return {
        "sources": len(sources), "conditions_per_source": len(CONDITIONS), "decoder_layers_executed": LAYERS, "moe_gates_executed": len(GATES),
        "hidden_stages": len(STAGES), "target_content_tokens_per_condition": content,
        "target_route_decisions": content * len(CONDITIONS) * len(GATES) * TOP_K,
        "hidden": {n: {e: over(
            "hidden_stages", n, e, exact_hidden_rows=("exact_hidden_rows", sum),
            token_weighted_mean_cosine_similarity=("mean_cosine_similarity", "tokens"),
            source_mean_relative_l2=("mean_relative_l2", "sources"), max_abs_delta=("max_abs_delta", max),
        ) for e in EDGES} for n in STAGES},
        "routes": {f"layer_{g:02d}": {e: over(
            "router_layers", f"layer_{g:02d}", e, ordered_topk_exact_tokens=("ordered_topk_exact_tokens", sum), set_exact_tokens=("set_exact_tokens", sum),
            token_weighted_mean_set_jaccard=("mean_set_jaccard", "tokens"),
            source_mean_token_weighted_tv=("mean_token_weighted_tv", "sources"), source_mean_aggregate_load_tv=("aggregate_load_tv", "sources"),
        ) for e in EDGES} for g in GATES},
    }


def main():
    sources = [trace(s) for s in SOURCES]
    document = {
        "schema_version": 1, "captured_at": "2026-01-02T03:04:05+00:00",
        "model": {
            "repo": "nobody/small", "revision": "none", "checkpoint_identity": "made up", "architecture": "Small", "dtype": "bfloat16",
            "download_revision_contract": {"made_up": True, "share": 0.5}, "files": {"config.json": {"bytes": 2, "sha256": sha(b"{}")}},
        },
        "tokenizer_contract": {
            "length": 92, "vocab_size": 90, "all_special_ids": [90, 91], "pad_token_id": 91,
            "conditions": {c: {"system": c.startswith("s1"), "boundary_token": c.split("_")[1]} for c in CONDITIONS},
        },
        "source_contract": {
            "reference_routing_sha256": None, "tnews_archive_sha256": sha(b"archive"), "domains": ["plain"], "per_domain": 2, "sources": len(sources),
            "full_source_text_used": True, "target_scope": "content \u2014 \"quoted\", <kept>\u2028 & \u007f\u0001",
        },
        "trace_contract": {
            "conditions": CONDITIONS, "scopes": ["target_content", "full_input"], "edge_pairs": EDGES, "decoder_layers": LAYERS, "moe_gate_layers": GATES,
            "experts": EXPERTS, "top_k": TOP_K, "use_cache": False, "raw_hidden_tensors_saved": False, "raw_route_ids_saved": False,
            "load_vectors_saved": True, "hashes_cover_exact_bfloat16_hidden_and_route_values": True,
        },
        "execution": {
            "python": None, "torch": None, "transformers": None, "accelerate": None, "safetensors": None, "platform": "none", "gpu": None,
            "gpu_memory_limit": None, "cpu_memory_limit": None, "pytorch_cuda_alloc_conf": None, "input_device": "cpu", "device_map": {},
            "load_seconds": 1e-05, "forward_seconds": 0.5, "load_peak_cuda_memory_allocated_bytes": None, "peak_cuda_memory_allocated_bytes": None,
            "process_max_rss_kib": 4096,
        },
        "sources": sources, "summary": summary(sources), "claim_boundary": ["Nothing was run."],
    }
    json.dump(document, sys.stdout, ensure_ascii=False, indent=2)
    print()


if __name__ == "__main__":
    main()
