package quant

import "github.com/plumbline-go/plumbline/engine"

// table is the embedding table; rows are quantised when they are asked for, if
// they are.
type table struct {
	data   []float32
	hidden int
	// scale is the whole table's, or 0 for a scale per row.
	scale float64
	ties  rounding
	float bool // rows are not quantised
}

func loadTable(w engine.Weights, a engine.Arch, opt options) (*table, error) {
	const name = "model.embed_tokens.weight"
	l := &loader{w: w, opt: opt}
	t := l.tensor(name, a.Vocab, a.Hidden)
	if l.err != nil {
		return nil, l.err
	}
	scale, ok := scaleOf32(t.Data)
	if !ok {
		l.fail(name, "finite values", "a NaN or infinity")
		return nil, l.err
	}
	if opt.embedPerRow {
		scale = 0
	}
	return &table{data: t.Data, hidden: a.Hidden, scale: scale, ties: opt.ties, float: opt.floatWeights}, nil
}

// row writes the embedding of a token, dequantised, to dst and returns its scale,
// 0 for a float row.
func (t *table) row(dst []float64, id int) float64 {
	src := t.data[id*t.hidden : (id+1)*t.hidden]
	if t.float {
		for i, v := range src {
			dst[i] = float64(v)
		}
		return 0
	}
	scale := t.scale
	if scale == 0 {
		scale, _ = scaleOf32(src) // finite: the whole table was checked
	}
	for i, v := range src {
		dst[i] = t.ties.code(float64(v), scale) * scale
	}
	return scale
}
