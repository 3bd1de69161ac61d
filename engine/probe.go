package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Probe names a place in a model. These are the only names in use; see the
// Probe constants and constructors.
type Probe string

// Places outside the decoder layers.
const (
	ProbeEmbed     Probe = "embed"
	ProbeFinalNorm Probe = "final_norm"
	ProbeLogits    Probe = "logits"
)

// Part names a place inside a decoder layer. Where a place has heads they are
// concatenated: head h of width d is at h*d to h*d+d-1.
type Part string

// The parts of a layer, in the order of computation. A linear layer has none of
// those from q to k_rope.
const (
	PartAttnNorm     Part = "attn_norm" // the input of the mixer: of q, k and v
	PartQ            Part = "q"         // with its bias, behind its norm where it has one, before RoPE
	PartK            Part = "k"         // as q
	PartV            Part = "v"         // behind its norm where it has one
	PartQRope        Part = "q_rope"
	PartKRope        Part = "k_rope"
	PartAttnOut      Part = "attn_out"  // before o_proj or out_proj, behind the gate where there is one
	PartResidMid     Part = "resid_mid" // the residual stream between attention and MLP
	PartRouterLogits Part = "router_logits"
	PartRouterScores Part = "router_scores" // what experts are chosen by: behind bias and groups; -Inf is possible
	PartRouteIDs     Part = "route_ids"     // the best score first; among equal ones the lowest id
	PartRouteWeights Part = "route_weights" // in the order of route_ids
	PartSharedOut    Part = "shared_out"    // of the shared experts, before it is added to the others'
	PartMLPOut       Part = "mlp_out"       // as it is added to the stream, behind its post norm where it has one
	PartResidPost    Part = "resid_post"    // the residual stream behind the layer
)

// Parts lists the parts of a layer in the order of computation.
func Parts() []Part { return parts() }

func parts() []Part {
	return []Part{PartAttnNorm, PartQ, PartK, PartV, PartQRope, PartKRope, PartAttnOut, PartResidMid,
		PartRouterLogits, PartRouterScores, PartRouteIDs, PartRouteWeights, PartSharedOut, PartMLPOut, PartResidPost}
}

// Routed reports whether the part is the router's: only layers with one have it,
// and its values are choices, not an update of the stream.
func (p Part) Routed() bool {
	return p == PartRouterLogits || p == PartRouterScores || p == PartRouteIDs || p == PartRouteWeights
}

// ofAttention reports whether only layers with attention have the part.
func (p Part) ofAttention() bool {
	return slices.Contains([]Part{PartQ, PartK, PartV, PartQRope, PartKRope}, p)
}

// Block is a place in decoder layer n (0-based).
func Block(n int, part Part) Probe { return Probe(fmt.Sprintf("blocks.%d.%s", n, part)) }

// ResidPost is the residual stream after decoder layer n (0-based).
func ResidPost(n int) Probe { return Block(n, PartResidPost) }

// ResidMid is the residual stream between attention and MLP of layer n.
func ResidMid(n int) Probe { return Block(n, PartResidMid) }

// RowProbe names row i of a residual capture: row 0 is embed, row i is
// blocks.(i-1).resid_post.
func RowProbe(i int) Probe {
	if i == 0 {
		return ProbeEmbed
	}
	return ResidPost(i - 1)
}

// Block takes the name of a place in a decoder layer apart; ok is false for
// every other name.
func (p Probe) Block() (layer int, part Part, ok bool) {
	rest, ok := strings.CutPrefix(string(p), "blocks.")
	number, name, dot := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	part = Part(name)
	if !ok || !dot || err != nil || layer < 0 || !slices.Contains(parts(), part) || Block(layer, part) != p {
		return 0, "", false
	}
	return layer, part, true
}

// ProbeError says that a name is no place of a model.
type ProbeError struct {
	Name string
	// Layers is the number of the model's decoder layers.
	Layers int
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("engine: probe: got %q, want %s", e.Name, probeNames(fmt.Sprintf("from 0 to %d", e.Layers-1)))
}

// probeNames lists the names there are; layers says which numbers N may be.
func probeNames(layers string) string {
	names := make([]string, len(parts()))
	for i, p := range parts() {
		names[i] = string(p)
	}
	return fmt.Sprintf("%s, %s, %s, or blocks.N. with N %s and one of %s",
		ProbeEmbed, ProbeFinalNorm, ProbeLogits, layers, strings.Join(names, ", "))
}

// known reports whether some model could have such a place.
func (p Probe) known() bool {
	_, err := ParseProbe(string(p), math.MaxInt)
	return err == nil
}

// ParseProbe checks a name against a model of so many decoder layers. The error
// is a [*ProbeError], which lists the names. A name of a router's place is a
// probe, though not every model offers it: see [Probe.Width].
func ParseProbe(name string, layers int) (Probe, error) {
	p := Probe(name)
	if p == ProbeEmbed || p == ProbeFinalNorm || p == ProbeLogits {
		return p, nil
	}
	if n, _, ok := p.Block(); ok && n < layers {
		return p, nil
	}
	return "", &ProbeError{Name: name, Layers: layers}
}

// Width is the number of values that a model has per position at the probe: a
// [*ProbeError] where there is no such place, an [*UnsupportedError] where the
// model has none of its kind.
func (p Probe) Width(a Arch) (int, error) {
	if _, err := ParseProbe(string(p), a.Layers); err != nil {
		return 0, err
	}
	n, part, ok := p.Block()
	heads, kv := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	out, values := heads, kv
	var l LayerParams
	if ok && n < len(a.PerLayer) {
		l = a.PerLayer[n]
		heads, kv = a.Heads*a.HeadDimOf(n), a.KVHeadsOf(n)*a.HeadDimOf(n)
		out, values = a.Heads*a.ValueDimOf(n), a.KVHeadsOf(n)*a.ValueDimOf(n)
	}
	switch {
	case l.Linear && part.ofAttention():
		return 0, &UnsupportedError{What: "probe " + string(p), Why: fmt.Sprintf("layer %d is linear and has no queries, keys and values of attention", n)}
	case l.Linear && part == PartAttnOut:
		return a.DeltaNet.ValueHeads * a.DeltaNet.ValueDim, nil
	case part.Routed() || part == PartSharedOut:
		return l.Experts.width(p, part, a)
	case part == PartQ, part == PartQRope:
		return heads, nil
	case part == PartAttnOut:
		return out, nil
	case part == PartK, part == PartKRope:
		return kv, nil
	case part == PartV:
		return values, nil
	case p == ProbeLogits:
		return a.Vocab, nil
	}
	return a.Hidden, nil
}

// width is the number of values per position of a part that only layers with
// experts have.
func (e Experts) width(p Probe, part Part, a Arch) (int, error) {
	switch {
	case e.Count == 0:
		return 0, &UnsupportedError{What: "probe " + string(p), Why: a.withoutRouter()}
	case part == PartRouterLogits, part == PartRouterScores:
		return e.Count, nil
	case part == PartRouteIDs, part == PartRouteWeights:
		return e.PerToken, nil
	case e.Shared == 0:
		return 0, &UnsupportedError{What: "probe " + string(p), Why: "the layer has no shared experts"}
	}
	return a.Hidden, nil
}

// withoutRouter says of a layer that it has no router.
func (a Arch) withoutRouter() string {
	for n := range a.PerLayer {
		if a.RoutedAt(n) {
			return "the layer has no router"
		}
	}
	return fmt.Sprintf("layers of the family %q have no router", a.Family)
}

// Probes lists the places that a model has, in the order of computation.
func Probes(a Arch) []Probe {
	all := []Probe{ProbeEmbed}
	for n := range a.Layers {
		for _, part := range parts() {
			if _, err := Block(n, part).Width(a); err == nil {
				all = append(all, Block(n, part))
			}
		}
	}
	return append(all, ProbeFinalNorm, ProbeLogits)
}

// Matrix holds float32 values in row-major order: a probe over positions.
type Matrix struct {
	Rows, Width int
	Data        []float32
}

// Row is row i, shared memory.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Width : (i+1)*m.Width] }
