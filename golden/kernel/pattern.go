package kernel

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

type field uint8

const (
	fieldText field = iota
	fieldOp
	fieldLayer
	fieldPos
	fieldStep
)

var fieldNames = map[string]field{"op": fieldOp, "layer": fieldLayer, "pos": fieldPos, "step": fieldStep}

// pattern is a compiled file or tensor name.
type pattern []patternPart

type patternPart struct {
	field field
	text  string
	width int // zero-padded to it
}

func parsePattern(s string) (pattern, error) {
	var out pattern
	for rest := s; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, fmt.Errorf("pattern %q: got a closing brace without an opening one, want {op}, {layer}, {pos}, {step}", s)
		}
		if text != "" {
			out = append(out, patternPart{text: text})
		}
		if !found {
			break
		}
		inner, after, closed := strings.Cut(after, "}")
		name, format, padded := strings.Cut(inner, ":")
		f, known := fieldNames[name]
		width := 0
		if padded && f != fieldOp && len(format) == 2 && format[0] == '0' && format[1] >= '1' && format[1] <= '9' {
			width, padded = int(format[1]-'0'), false
		}
		if !closed || !known || padded {
			return nil, fmt.Errorf("pattern %q: got {%s, want {op}, {layer}, {pos}, {step}, the numbers with a width as in {layer:02}", s, inner)
		}
		out = append(out, patternPart{field: f, width: width})
		rest = after
	}
	return out, nil
}

func (p pattern) has(fields []field) bool {
	return slices.ContainsFunc(p, func(part patternPart) bool { return slices.Contains(fields, part.field) })
}

// append appends the name of k to b.
func (p pattern) append(b []byte, inv *Inventory, k Key) []byte {
	for _, part := range p {
		n := 0
		switch part.field {
		case fieldText:
			b = append(b, part.text...)
			continue
		case fieldOp:
			b = append(b, inv.Ops[k.Op].Name...)
			continue
		case fieldLayer:
			n = k.Layer
		case fieldPos:
			n = inv.Positions[k.Position].Pos
		case fieldStep:
			n = inv.Positions[k.Position].Step
		}
		for limit, width := 10, part.width; width > 1; limit, width = limit*10, width-1 {
			if n < limit {
				b = append(b, '0')
			}
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// FileOf is the relative path of a tensor's file.
func (inv *Inventory) FileOf(k Key) string { return string(inv.file.append(nil, inv, k)) }

// format is how the tensors of an inventory are stored.
type format uint8

const (
	formatRaw format = iota
	formatNPY
	formatNPZ
	formatSafetensors
)

func (f format) container() bool { return f == formatNPZ || f == formatSafetensors }

func (inv *Inventory) format() format {
	switch filepath.Ext(inv.File) {
	case ".npy":
		return formatNPY
	case ".npz":
		return formatNPZ
	case ".safetensors":
		return formatSafetensors
	}
	return formatRaw
}
