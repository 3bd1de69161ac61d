package inspect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Formats a reading can have.
const (
	FloatLayers = "float layer dump"
	Int8Layers  = "int8 layer dump"
	FloatLogits = "float logit dump"
	Int32Logits = "int32 logit dump"
	Safetensors = "safetensors"
	GGUF        = "GGUF"
)

// Reading is a format that fits the bytes of a file.
type Reading struct {
	Format string `json:"format"`
	// Declared is true when the file's side declares this format.
	Declared bool `json:"declared"`
	// Exact is false when bytes are left over, which only an int8 layer dump may
	// have.
	Exact         bool  `json:"exact"`
	TrailingBytes int64 `json:"trailing_bytes,omitempty"`

	Rows        int    `json:"rows,omitempty"`
	Width       int    `json:"hidden_size,omitempty"`
	Vocab       int    `json:"vocab,omitempty"`
	Fingerprint string `json:"prompt_fingerprint,omitempty"`
	CaptureMode uint64 `json:"capture_mode,omitempty"`
	// Empty is true for a logit dump without rows.
	Empty bool `json:"empty,omitempty"`

	Values  *Values  `json:"values,omitempty"`
	Tensors []Tensor `json:"tensors,omitempty"`
	// Keys are those of a GGUF file, in its order.
	Keys []Key `json:"keys,omitempty"`
}

// Key is a key of a GGUF file. Of a list the value is its length and type.
type Key struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Values is what one pass over the rows found. Rows are listed by index.
type Values struct {
	NonFiniteRows []int   `json:"non_finite_rows,omitempty"`
	ConstantRows  []int   `json:"constant_rows,omitempty"`
	AllZeroRows   []int   `json:"all_zero_rows,omitempty"`
	MinNorm       float64 `json:"min_norm"`
	MaxNorm       float64 `json:"max_norm"`
}

// Tensor is one tensor of a safetensors or GGUF file.
type Tensor struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// Report is what a file holds.
type Report struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Readings that fit, the declared one first.
	Readings []Reading `json:"readings"`
	// Refused says for each other format that was tried why it doesn't fit.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is a format that doesn't fit.
type Refusal struct {
	Format string `json:"format"`
	Why    string `json:"why"`
}

// MalformedError says that no reading fits a file, or not the declared one.
type MalformedError struct {
	File string
	// Declared is the declared format, or empty.
	Declared string
	Err      error
}

func (e *MalformedError) Error() string {
	if e.Declared != "" {
		return "inspect: " + dumpfmt.Printable(e.File) + ": declared as " + e.Declared + ": " + e.Err.Error()
	}
	return "inspect: " + dumpfmt.Printable(e.File) + ": no format fits: " + e.Err.Error()
}

func (e *MalformedError) Unwrap() error { return e.Err }

// File looks at one dump, safetensors or GGUF file. A file that doesn't fit gives the
// report, with the refusals, and a *MalformedError; a file that can't be read an
// error of the system's.
func File(path string) (*Report, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r := &Report{File: path, Bytes: st.Size()}
	declared := declaredFormat(path)
	var refusals []error
	for _, format := range candidates(path) {
		reading, err := read(format, path)
		var sys *os.PathError
		if errors.As(err, &sys) {
			return nil, err
		}
		if err != nil {
			r.Refused = append(r.Refused, Refusal{Format: format, Why: err.Error()})
			refusals = append(refusals, err)
			if format == declared {
				return r, &MalformedError{File: path, Declared: declared, Err: err}
			}
			continue
		}
		reading.Format, reading.Declared = format, format == declared
		if reading.Declared {
			r.Readings = append([]Reading{*reading}, r.Readings...)
		} else {
			r.Readings = append(r.Readings, *reading)
		}
	}
	if len(r.Readings) == 0 {
		return r, &MalformedError{File: path, Declared: declared, Err: errors.Join(refusals...)}
	}
	return r, nil
}

// candidates lists the formats that the ending of a name leaves open.
func candidates(path string) []string {
	switch {
	case strings.HasSuffix(path, ".layers.bin"):
		return []string{FloatLayers, Int8Layers}
	case strings.HasSuffix(path, ".logits.bin"):
		return []string{FloatLogits, Int32Logits}
	case strings.HasSuffix(path, ".safetensors"):
		return []string{Safetensors}
	case strings.HasSuffix(path, ".gguf"):
		return []string{GGUF}
	}
	return []string{FloatLayers, Int8Layers, FloatLogits, Int32Logits, Safetensors, GGUF}
}

// declaredFormat is what engine.json beside the file declares for its ending.
func declaredFormat(path string) string {
	switch {
	case strings.HasSuffix(path, ".safetensors"):
		return Safetensors
	case strings.HasSuffix(path, ".gguf"):
		return GGUF
	}
	side, err := dumpfmt.ReadEngineFile(filepath.Dir(path))
	if err != nil {
		return ""
	}
	layers := map[string]string{dumpfmt.LayersFloat32: FloatLayers, dumpfmt.LayersInt8Scaled: Int8Layers}
	logits := map[string]string{dumpfmt.LogitsFloat32: FloatLogits, dumpfmt.LogitsInt32: Int32Logits}
	switch {
	case strings.HasSuffix(path, ".layers.bin"):
		return layers[side.Layers]
	case strings.HasSuffix(path, ".logits.bin"):
		return logits[side.Logits]
	}
	return ""
}

// scan looks at every row once.
func scan(rows, width int, row func(i int, dst []float64) error) (*Values, error) {
	v := &Values{}
	buf := make([]float64, width)
	for i := range rows {
		if err := row(i, buf); err != nil {
			return nil, err
		}
		switch metric.Classify(buf).Kind {
		case metric.NonFinite:
			v.NonFiniteRows = append(v.NonFiniteRows, i)
			continue // it has no norm
		case metric.Constant:
			v.ConstantRows = append(v.ConstantRows, i)
		case metric.AllZero:
			v.AllZeroRows = append(v.AllZeroRows, i)
		}
		n := metric.L2(buf)
		if i == len(v.NonFiniteRows) || n < v.MinNorm { // the first finite row, or a smaller one
			v.MinNorm = n
		}
		v.MaxNorm = max(v.MaxNorm, n)
	}
	return v, nil
}
