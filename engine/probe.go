package engine

import "fmt"

// Probe names a place in a model. These are the only names in use; see the
// Probe constants and constructors.
type Probe string

// Places outside the decoder layers.
const (
	ProbeEmbed     Probe = "embed"
	ProbeFinalNorm Probe = "final_norm"
	ProbeLogits    Probe = "logits"
)

// ResidPost is the residual stream after decoder layer n (0-based).
func ResidPost(n int) Probe { return Probe(fmt.Sprintf("blocks.%d.resid_post", n)) }

// ResidMid is the residual stream between attention and MLP of layer n.
func ResidMid(n int) Probe { return Probe(fmt.Sprintf("blocks.%d.resid_mid", n)) }

// RowProbe names row i of a residual capture: row 0 is embed, row i is
// blocks.(i-1).resid_post.
func RowProbe(i int) Probe {
	if i == 0 {
		return ProbeEmbed
	}
	return ResidPost(i - 1)
}
