package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TensorOp is a place in every layer under the name that it has in files.
type TensorOp struct {
	Name string
	Part Part
}

// AttentionOps are the tensors that kernels of attention are compared by: q, k and
// v behind their norms and before RoPE, and what attention gives before o_proj.
func AttentionOps() []TensorOp {
	return []TensorOp{{"q_normed", PartQ}, {"k_normed", PartK}, {"v_normed", PartV}, {"sdpa_out", PartAttnOut}}
}

// AttentionFile is the file of such a tensor, "hf2q_OP_layerLL_posPP.bin", the
// numbers with at least two digits.
func AttentionFile(op string, layer, position int) string {
	return fmt.Sprintf("hf2q_%s_layer%02d_pos%02d.bin", op, layer, position)
}

// TensorFolder says which tensors of a run become files, one per layer, position
// and op: headerless little-endian float32, the heads concatenated.
type TensorFolder struct {
	// Layers is the number of the model's decoder layers.
	Layers int
	// Positions are those to write, counted from the prompt's first.
	Positions []int
	// Ops are the tensors; nil means AttentionOps.
	Ops []TensorOp
	// File is a file's path below the folder; nil means AttentionFile. Two tensors
	// must not have one.
	File func(op string, layer, position int) string
}

func (f TensorFolder) ops() []TensorOp {
	if f.Ops == nil {
		return AttentionOps()
	}
	return f.Ops
}

// Probes are the places that the files are made of.
func (f TensorFolder) Probes() []Probe {
	var all []Probe
	for n := range f.Layers {
		for _, op := range f.ops() {
			all = append(all, Block(n, op.Part))
		}
	}
	return all
}

// Write writes the tensors of a run below dir, which it makes, and returns how many
// files there are. That all are there, and at other paths than the others, is
// checked before the first is written; each appears whole or not at all. A place or
// a position that the run doesn't have is an error, as is a file that exists, unless
// o allows it.
func (f TensorFolder) Write(ctx context.Context, dir string, run ProbeSource, o dumpfmt.WriteOptions) (int, error) {
	name := f.File
	if name == nil {
		name = AttentionFile
	}
	if f.Layers < 1 || len(f.ops()) == 0 || len(f.Positions) == 0 {
		return 0, fmt.Errorf("engine: tensor folder: got %d layers, %d ops and %d positions, want at least 1 of each", f.Layers, len(f.ops()), len(f.Positions))
	}
	have, seen := map[Probe]bool{}, map[string]bool{}
	for _, p := range run.Probes() {
		have[p] = true
	}
	for n := range f.Layers {
		for _, op := range f.ops() {
			p := Block(n, op.Part)
			if !have[p] {
				return 0, fmt.Errorf("engine: tensor folder: %s: got no such probe of the run, want it for op %s", p, op.Name)
			}
			rows, _ := run.Shape(p)
			for _, pos := range f.Positions {
				file := name(op.Name, n, pos)
				switch {
				case pos < 0 || pos >= rows:
					return 0, fmt.Errorf("engine: tensor folder: %s: got position %d, want 0 to %d", p, pos, rows-1)
				case !filepath.IsLocal(file):
					return 0, fmt.Errorf("engine: tensor folder: %s: got file %q, want a path inside the folder", p, file)
				case seen[filepath.Clean(file)]:
					return 0, fmt.Errorf("engine: tensor folder: %s: got file %q a second time, want one per tensor", p, file)
				}
				seen[filepath.Clean(file)] = true
			}
		}
	}
	written := 0
	for n := range f.Layers {
		for _, op := range f.ops() {
			if err := ctx.Err(); err != nil {
				return written, fmt.Errorf("engine: tensor folder: %w", err)
			}
			m, err := run.Matrix(Block(n, op.Part))
			if err != nil {
				return written, err
			}
			for _, pos := range f.Positions {
				if err := dumpfmt.WriteFile(filepath.Join(dir, name(op.Name, n, pos)), rawFloat32(m.Row(pos)), o); err != nil {
					return written, fmt.Errorf("engine: tensor folder: %w", err)
				}
				written++
			}
		}
	}
	return written, nil
}

func rawFloat32(row []float32) []byte {
	out := make([]byte, 0, 4*len(row))
	for _, v := range row {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
