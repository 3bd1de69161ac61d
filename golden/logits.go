package golden

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// HasLayers reports whether the set has a layer dump of the case.
func (s *Set) HasLayers(name string) bool { return s.has(name + ".layers.bin") }

// HasLogits reports whether the set has a logit dump of the case.
func (s *Set) HasLogits(name string) bool { return s.has(name + ".logits.bin") }

func (s *Set) has(file string) bool {
	_, ok := s.Manifest.Goldens.Files[file]
	return ok
}

// Logits opens a case's logit dump, held to its hash.
func (s *Set) Logits(name string) (*dumpfmt.FloatLogits, error) {
	file := name + ".logits.bin"
	b, err := s.read(file)
	if err != nil {
		return nil, err
	}
	return dumpfmt.NewFloatLogits(bytes.NewReader(b), int64(len(b)), s.name+"/"+file)
}

// LogitFloor returns the precision floor of each row of a case's logit dump:
// relative L2 of the recorded row from an independent float64 run. It is nil for
// a plain folder, which recorded none.
func (s *Set) LogitFloor(name string) []float64 { return s.Manifest.Precision.Cases[name].Logits }

// Output returns the tokens that the trusted engine chose and the stop ids that
// it had, as NAME.json says; tokens nil means that it doesn't say. In a set with
// a manifest the file is held to its hash.
func (s *Set) Output(name string) (tokens, stop []int, err error) {
	file := name + ".json"
	var data []byte
	if s.plain {
		data, err = fs.ReadFile(s.fsys, file)
	} else {
		data, err = s.read(file)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("golden: %w", err)
	}
	c, err := dumpfmt.ParseCaseFile(s.name+"/"+file, data)
	if err != nil {
		return nil, nil, fmt.Errorf("golden: %w", err)
	}
	return c.OutputIDs, c.Stop, nil
}
