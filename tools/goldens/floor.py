"""Prints how precise the goldens are: a bound below this floor would judge rounding, not an engine."""


def lines(cases):
    """Per case the error at the last layer row, the largest over the layer rows, and the largest over the logits."""
    out = ["precision floor, relative L2 of float32 from float64:", f"  {'case':24} last row  max row   max logits"]
    for name, p in cases.items():
        out.append(f"  {name:24} {p['layers'][-1]:.2e}  {max(p['layers']):.2e}  {max(p['logits']):.2e}")
    return out
