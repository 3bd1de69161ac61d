"""The peer of BenchmarkTokenHalfBillion: transformers, float32, one thread.

Builds a Qwen2 of the Qwen2.5-0.5B shape with random weights (nothing is
downloaded or stored) and decodes on request, token by token with a KV cache:
every hidden state of the newest position and its whole logit row come to the
host, as Plumbline's own side does it.

Protocol, one line each way: on start {"ready": versions}; for a line "N" on
standard input, {"cpu": [seconds of process CPU time per token, N of them]}.
The first token of a request starts an empty cache.

    python3 peer_transformers.py [--threads 1]
"""

import argparse
import json
import resource
import sys

import torch
import transformers


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def build():
    config = transformers.Qwen2Config(
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        max_position_embeddings=32768,
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
    )
    # transformers' own initialisation of 494 million weights takes longer than
    # the measurement; every weight is written below.
    with torch.device("meta"):
        model = transformers.Qwen2ForCausalLM(config)
    rotary = type(model.model.rotary_emb)(config)
    model = model.to_empty(device="cpu").float()
    model.model.rotary_emb = rotary
    model.tie_weights()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1 and "norm" in name:
                p.fill_(1)
            else:
                bound = (3 / p.shape[-1]) ** 0.5
                p.uniform_(-bound, bound, generator=generator)
    return model.eval()


@torch.inference_mode()
def decode(model, n):
    spent, past, token = [], None, 1
    for _ in range(n):
        start = cpu()
        out = model(
            input_ids=torch.tensor([[token]]),
            past_key_values=past,
            use_cache=True,
            output_hidden_states=True,
        )
        past = out.past_key_values
        rows = [h[0, -1].numpy().copy() for h in out.hidden_states]
        logits = out.logits[0, -1].numpy().copy()
        token = int(logits.argmax())
        spent.append(cpu() - start)
        assert len(rows) == model.config.num_hidden_layers + 1
    return spent


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    model = build()
    ready = f"torch {torch.__version__}, transformers {transformers.__version__}, {torch.get_num_threads()} thread"
    print(json.dumps({"ready": ready}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"cpu": decode(model, int(line))}), flush=True)


if __name__ == "__main__":
    main()
