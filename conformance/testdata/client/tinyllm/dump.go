package tinyllm

import "github.com/plumbline-go/plumbline/dumpfmt"

// Side is what the engine says of itself, in engine.json or in a handshake.
var Side = dumpfmt.EngineFile{Name: "tinyllm", Version: "1", Layers: dumpfmt.LayersFloat32, Logits: dumpfmt.LogitsFloat32, DType: "float32"}

// WriteLayers writes rows as a layer dump; text is the templated prompt.
func WriteLayers(path, text string, rows [][]float32) error {
	w, err := dumpfmt.CreateFloatLayers(path, dumpfmt.LayerHeader{Rows: len(rows), Width: len(rows[0]),
		Fingerprint: dumpfmt.Fingerprint(text), Mode: dumpfmt.CaptureIncremental}, dumpfmt.WriteOptions{})
	if err != nil {
		return err
	}
	defer w.Abort() // nothing after Commit
	return writeRows(w, rows)
}

// WriteLogits writes the row behind each token as a logit dump.
func WriteLogits(path string, rows [][]float32) error {
	w, err := dumpfmt.CreateFloatLogits(path, logitHeader(rows), dumpfmt.WriteOptions{})
	if err != nil {
		return err
	}
	defer w.Abort()
	return writeRows(w, rows)
}

func logitHeader(rows [][]float32) dumpfmt.LogitHeader {
	if len(rows) == 0 {
		return dumpfmt.LogitHeader{}
	}
	return dumpfmt.LogitHeader{Rows: len(rows), Vocab: len(rows[0])}
}

// WriteCase adds what a prompt came to, to a dump folder.
func WriteCase(w *dumpfmt.FolderWriter, name, text string, prompt, stop []int, out *Output) error {
	c, err := w.Case(name, dumpfmt.CaseFile{Text: text, TokenIDs: prompt, OutputIDs: out.IDs, Stop: stop})
	if err != nil {
		return err
	}
	layers, err := c.FloatLayers(len(out.Rows), len(out.Rows[0]))
	if err != nil {
		return err
	}
	defer layers.Abort()
	if err := writeRows(layers, out.Rows); err != nil {
		return err
	}
	logits, err := c.FloatLogits(logitHeader(out.Logits))
	if err != nil {
		return err
	}
	defer logits.Abort()
	if err := writeRows(logits, out.Logits); err != nil {
		return err
	}
	return c.Commit()
}

type rowWriter interface {
	WriteRow([]float32) error
	Commit() error
}

func writeRows(w rowWriter, rows [][]float32) error {
	for _, row := range rows {
		if err := w.WriteRow(row); err != nil {
			return err
		}
	}
	return w.Commit()
}
