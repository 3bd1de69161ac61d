#!/usr/bin/env python3
"""Plants a fault in a GGUF: exchanges two heads of a projection, without a trace in any norm.

  python3 swap_heads.py IN.gguf OUT.gguf blk.2.attn_k.weight 3 0 1

3 is how many heads the tensor has, whose rows lie in the file one behind the
other. Python 3.8, standard library only."""

import sys

import scale_tensor


def swap(data, heads, a, b):
    """Rows of whole heads, with two of them exchanged."""
    size, rest = divmod(len(data), heads)
    if rest or not 0 <= a < b < heads:
        raise ValueError("%d bytes in %d heads: want whole ones, and two numbers of them in order; got %d and %d" % (len(data), heads, a, b))
    head = [data[i * size : (i + 1) * size] for i in range(heads)]
    head[a], head[b] = head[b], head[a]
    return b"".join(head)


def main(source, target, name, *numbers):
    scale_tensor.change(source, target, name, lambda data, _size, _halves: swap(data, *map(int, numbers)))


if __name__ == "__main__":
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
