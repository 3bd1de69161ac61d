package reference

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// blockProducts is the size of a matrix product, in multiply-adds, from which
// on the go backend repacks the weights on every call. A decode step multiplies
// one row, so a block of rows times in products stays below it.
const blockProducts = 4 << 20

// slot is one weight of a layer: its name below the layer's prefix, and its
// shape. A vector is stored as [1, n]; a matrix [out, in] as blocks of rows; what
// has more axes as it is.
type slot struct {
	name  string
	shape []int
}

// blockRows returns the rows of each block of a matrix [out, in]: as few blocks
// as stay below blockProducts, of nearly equal size.
func blockRows(out, in int) []int {
	most := max(1, (blockProducts-1)/max(1, in))
	n := (out + most - 1) / most
	rows := make([]int, n)
	for i := range rows {
		rows[i] = out*(i+1)/n - out*i/n
	}
	return rows
}

// blocks is the number of tensors that the slot is stored as.
func (s slot) blocks() int {
	if len(s.shape) != 2 {
		return 1
	}
	return len(blockRows(s.shape[0], s.shape[1]))
}

// uploadSlot stores a weight as the graphs expect it.
func uploadSlot(d device, s slot, data []float32) ([]*tensors.Tensor, error) {
	if len(s.shape) == 1 {
		t, err := upload(d, data, 1, s.shape[0])
		return []*tensors.Tensor{t}, err
	}
	if len(s.shape) > 2 {
		t, err := upload(d, data, s.shape...)
		return []*tensors.Tensor{t}, err
	}
	in := s.shape[1]
	var ts []*tensors.Tensor
	at := 0
	for _, rows := range blockRows(s.shape[0], in) {
		t, err := upload(d, data[at*in:(at+rows)*in], rows, in)
		if err != nil {
			return nil, err
		}
		ts = append(ts, t)
		at += rows
	}
	return ts, nil
}

// uploadSlots fetches, checks and stores the weights of slots, in their order.
func uploadSlots(d device, w engine.Weights, prefix string, slots []slot) ([]*tensors.Tensor, error) {
	var all []*tensors.Tensor
	for _, s := range slots {
		t, err := d.fetch(w, prefix+s.name, s.shape)
		if err != nil {
			return nil, err
		}
		ts, err := uploadSlot(d, s, t.Data)
		if err != nil {
			return nil, err
		}
		all = append(all, ts...)
	}
	return all, nil
}

// fetch asks w for a tensor and checks its shape, its size and that its values
// are finite: a NaN would be what every comparison is made with. It has them as the
// device's arithmetic holds them.
func (d device) fetch(w engine.Weights, name string, want []int) (engine.Tensor, error) {
	t, err := w.Tensor(name)
	if err != nil {
		return engine.Tensor{}, fmt.Errorf("reference: weights: %w", err)
	}
	if err := checkShape("weights", name, t.Shape, want); err != nil {
		return engine.Tensor{}, err
	}
	n := 1
	for _, dim := range want {
		n *= dim
	}
	if len(t.Data) != n {
		return engine.Tensor{}, &engine.ConfigError{File: "weights", What: "tensor " + name,
			Got: fmt.Sprintf("%d values", len(t.Data)), Want: fmt.Sprintf("%d values", n)}
	}
	t.Data = heldValues(d.dtype.rounder(), t.Data)
	for i, v := range t.Data {
		if v-v != 0 { // NaN and the infinities
			return engine.Tensor{}, &engine.ConfigError{File: "weights", What: fmt.Sprintf("tensor %s: element %d", name, i),
				Got: fmt.Sprint(v), Want: "a finite value"}
		}
	}
	return t, nil
}

// cursor hands out a graph's inputs in the order that the caller feeds them.
type cursor struct {
	nodes []*graph.Node
}

func (c *cursor) take() *graph.Node {
	n := c.nodes[0]
	c.nodes = c.nodes[1:]
	return n
}

// params are the weights of one layer inside a graph, and what is held in the
// engine's dtype there.
type params struct {
	rounder
	slots map[string][]*graph.Node
}

// params takes the layer's weights from a graph's inputs.
func (g *layerGraphs) params(c *cursor) params { return c.params(g.rounder, g.slots) }

// params takes the weights of slots, in their order.
func (c *cursor) params(r rounder, slots []slot) params {
	p := params{r, make(map[string][]*graph.Node, len(slots))}
	for _, s := range slots {
		n := s.blocks()
		p.slots[s.name] = c.nodes[:n]
		c.nodes = c.nodes[n:]
	}
	return p
}

// experts takes the weights of a layer's routed experts.
func (c *cursor) experts(g *layerGraphs) []params {
	all := make([]params, g.experts.Count)
	for i := range all {
		all[i] = c.params(g.rounder, g.expertSlots())
	}
	return all
}

func (p params) vector(name string) *graph.Node { return p.slots[name][0] }

// linear returns x·Wᵀ + b for x [T, in] and W [out, in]; b when there is one. The
// sum with the bias is what is held in the engine's dtype, as in torch's addmm.
func (p params) linear(x *graph.Node, name string) *graph.Node {
	y := linearBlocks(x, p.slots[name+".weight"])
	if b, ok := p.slots[name+".bias"]; ok {
		y = graph.Add(y, b[0])
	}
	return p.held(y)
}

// linearBlocks is one product per block of rows, concatenated; nothing is rounded
// to the engine's dtype.
func linearBlocks(x *graph.Node, blocks []*graph.Node) *graph.Node {
	parts := make([]*graph.Node, len(blocks))
	for i, w := range blocks {
		parts[i] = graph.Dot(x, w).General([]int{1}, nil, []int{1}, nil)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return graph.Concatenate(parts, 1)
}
