package kernel

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxNamesChecked is how many names distinct compares one by one.
const maxNamesChecked = 1 << 18

// distinct refuses patterns that give two tensors one name: "f{layer}{pos}" makes
// f111 of layer 1 at 11 and of layer 11 at 1, and a tensor compared twice hides
// another one.
func (inv *Inventory) distinct() error {
	for _, op := range inv.Ops {
		if path.Join("x", op.Name) != "x/"+op.Name {
			return fmt.Errorf("kernel: inventory %s: op: got %q, want a name that stays in its folder", inv.Name, op.Name)
		}
	}
	whole := slices.Concat(inv.file, pattern{{text: "#"}}, inv.tensor)
	if whole.decodable(inv.Ops) {
		return nil
	}
	want := "text between the fields, so that no two tensors are one"
	if inv.Len() > maxNamesChecked {
		return fmt.Errorf("kernel: inventory %s: file: got %q, want %s", inv.Name, inv.File+"#"+inv.Tensor, want)
	}
	seen := make(map[string]int, inv.Len())
	for i := range inv.Len() {
		name := string(whole.append(nil, inv, inv.Key(i)))
		if other, ok := seen[name]; ok {
			return fmt.Errorf("kernel: inventory %s: file: got %q for both %s and %s, want %s", inv.Name, strings.TrimSuffix(name, "#"),
				inv.Coordinates(inv.Key(other)), inv.Coordinates(inv.Key(i)), want)
		}
		seen[name] = i
	}
	return nil
}

// decodable reports whether a name tells its fields, read from the left: a number
// ends where no digit can follow, an op where the ops with the text behind them are
// such that none begins another. Where it isn't, names may still differ.
func (p pattern) decodable(ops []Op) bool {
	for i, part := range p {
		next := "" // the text behind the field
		last := i == len(p)-1
		if !last && p[i+1].field == fieldText {
			next = p[i+1].text
		}
		switch part.field {
		case fieldText:
		case fieldOp:
			if last {
				continue
			}
			names := make([]string, len(ops))
			for j, op := range ops {
				names[j] = op.Name + next
			}
			slices.Sort(names)
			for j := 1; j < len(names); j++ {
				if strings.HasPrefix(names[j], names[j-1]) {
					return false
				}
			}
		default:
			if !last && (next == "" || next[0] >= '0' && next[0] <= '9') {
				return false
			}
		}
	}
	return true
}
