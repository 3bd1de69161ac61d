package dumpfmt

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
)

// declared refuses to open a dump that isn't there or has another type.
func (c *Case) declared(op, path, got, want string) error {
	if c.Err != nil {
		return c.Err
	}
	if path == "" {
		return fmt.Errorf("dumpfmt: %s: case %q: %w", op, c.Name, fs.ErrNotExist)
	}
	if got != want {
		return &UsageError{Op: op, What: "type that engine.json declares", Got: strconv.Quote(got), Want: strconv.Quote(want)}
	}
	return nil
}

// checkFingerprint ties a layer dump to the case's text.
func (c *Case) checkFingerprint(file string, h LayerHeader) error {
	if want := Fingerprint(c.File.Text); h.Fingerprint != want {
		return &FingerprintError{File: file, Offset: offsetFingerprint, Want: want, Got: h.Fingerprint}
	}
	return nil
}

// OpenFloatLayers opens NAME.layers.bin where engine.json declares "f32", and
// checks its fingerprint against the case's text (*FingerprintError).
func (c *Case) OpenFloatLayers() (*FloatLayers, error) {
	if err := c.declared("Case.OpenFloatLayers", c.LayersPath, c.engine.Layers, LayersFloat32); err != nil {
		return nil, err
	}
	d, err := OpenFloatLayers(c.LayersPath)
	if err != nil {
		return nil, err
	}
	if err := c.checkFingerprint(c.LayersPath, d.h); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// OpenInt8Layers opens NAME.layers.bin where engine.json declares
// "int8-scaled", and checks its fingerprint against the case's text
// (*FingerprintError).
func (c *Case) OpenInt8Layers() (*Int8Layers, error) {
	if err := c.declared("Case.OpenInt8Layers", c.LayersPath, c.engine.Layers, LayersInt8Scaled); err != nil {
		return nil, err
	}
	d, err := OpenInt8Layers(c.LayersPath)
	if err != nil {
		return nil, err
	}
	if err := c.checkFingerprint(c.LayersPath, d.h); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// checkOutputs ties a logit dump to output_ids, where the case tells them: row i
// chose token i.
func (c *Case) checkOutputs(h LogitHeader) error {
	ids := c.File.OutputIDs
	if ids == nil || len(ids) == h.Rows {
		return nil
	}
	return &FormatError{File: c.JSONPath, Format: formatCaseFile, Offset: NoOffset, What: "output_ids",
		Got: fmt.Sprintf("%d ids", len(ids)), Want: fmt.Sprintf("%d, one for each logit row", h.Rows),
		Note: "in " + filepath.Base(c.LogitsPath)}
}

// OpenFloatLogits opens NAME.logits.bin where engine.json declares "f32", and
// checks that the case's output_ids, if told, are as many as its rows.
func (c *Case) OpenFloatLogits() (*FloatLogits, error) {
	if err := c.declared("Case.OpenFloatLogits", c.LogitsPath, c.engine.Logits, LogitsFloat32); err != nil {
		return nil, err
	}
	d, err := OpenFloatLogits(c.LogitsPath)
	if err != nil {
		return nil, err
	}
	if err := c.checkOutputs(d.Header()); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// OpenInt32Logits opens NAME.logits.bin where engine.json declares "i32", and
// checks that the case's output_ids, if told, are as many as its rows.
func (c *Case) OpenInt32Logits() (*Int32Logits, error) {
	if err := c.declared("Case.OpenInt32Logits", c.LogitsPath, c.engine.Logits, LogitsInt32); err != nil {
		return nil, err
	}
	d, err := OpenInt32Logits(c.LogitsPath)
	if err != nil {
		return nil, err
	}
	if err := c.checkOutputs(d.Header()); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// OpenProbes opens NAME.probes.safetensors and checks that every tensor is F32
// of shape [positions, width], with at least one position and no more than the
// case has token_ids and output_ids.
func (c *Case) OpenProbes() (*Safetensors, error) {
	if err := c.declared("Case.OpenProbes", c.ProbesPath, "", ""); err != nil {
		return nil, err
	}
	d, err := OpenSafetensors(c.ProbesPath)
	if err != nil {
		return nil, err
	}
	if err := c.checkProbes(d); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func (c *Case) checkProbes(d *Safetensors) error {
	limit := len(c.File.TokenIDs) + len(c.File.OutputIDs)
	if len(d.tensors) == 0 {
		return d.src.broken(NoOffset, "tensors", "none", "at least one probe")
	}
	for _, t := range d.tensors {
		what := fmt.Sprintf("probe %q", t.Name)
		if t.DType != F32 {
			return d.src.broken(NoOffset, "dtype of "+what, string(t.DType), "F32")
		}
		if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 || t.Shape[0] > limit {
			return d.src.broken(NoOffset, "shape of "+what, fmt.Sprint(t.Shape),
				fmt.Sprintf("[positions, width], each at least 1, with at most %d positions", limit))
		}
	}
	return nil
}

// Check opens and closes every dump of the case, scales included, and returns
// the first thing that is wrong with it.
func (c *Case) Check() error {
	if c.Err != nil {
		return c.Err
	}
	var err error
	if c.LayersPath != "" {
		if c.engine.Layers == LayersInt8Scaled {
			var d *Int8Layers
			if d, err = c.OpenInt8Layers(); err == nil {
				err = d.CheckScales()
				_ = d.Close()
			}
		} else {
			err = closing(c.OpenFloatLayers())
		}
	}
	if err == nil && c.LogitsPath != "" {
		if c.engine.Logits == LogitsInt32 {
			err = closing(c.OpenInt32Logits())
		} else {
			err = closing(c.OpenFloatLogits())
		}
	}
	if err == nil && c.ProbesPath != "" {
		err = closing(c.OpenProbes())
	}
	return err
}

func closing(d interface{ Close() error }, err error) error {
	if err != nil {
		return err
	}
	return d.Close()
}
