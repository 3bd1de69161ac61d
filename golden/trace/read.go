package trace

import (
	"errors"
	"fmt"
	"os"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// maxDocumentBytes bounds a document: that of a thousand sources.
const maxDocumentBytes = 2 << 30

// Read reads a document from a file; see [Parse].
func Read(path string) (*Document, error) {
	v, err := canonical.ReadFile(path, maxDocumentBytes)
	if err != nil {
		return nil, broken(path, err)
	}
	return fromValue(path, v)
}

// Parse reads a document; name stands for it in errors. A broken one is a
// [*FormatError]: cut short, a key missing, unknown or twice, a value of another
// kind, stages, gates, conditions or edges that aren't those of its own contract. One
// of another schema is an [*UnsupportedError].
func Parse(name string, data []byte) (*Document, error) {
	v, err := canonical.Parse(name, data)
	if err != nil {
		return nil, broken(name, err)
	}
	return fromValue(name, v)
}

// broken gives an error of the JSON this package's form.
func broken(name string, err error) error {
	var syntax *canonical.SyntaxError
	var size *canonical.SizeError
	switch {
	case errors.As(err, &syntax):
		at := fmt.Sprintf("byte 0x%X", syntax.Offset)
		if syntax.Pointer != "" {
			at += ", " + syntax.Pointer
		}
		want := syntax.Want
		if want == "" {
			want = "JSON"
		}
		return &FormatError{name, at, syntax.Got, want}
	case errors.As(err, &size):
		return &FormatError{name, "size", fmt.Sprintf("%d bytes", size.Size), fmt.Sprintf("at most %d", size.Most)}
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("trace: document: %w", err)
	}
	return fmt.Errorf("trace: %w", err)
}

func fromValue(name string, v canonical.Value) (*Document, error) {
	if version, ok := v.Get("schema_version"); ok {
		n, ok := version.Int()
		if !ok {
			return nil, &FormatError{name, "schema_version", version.String(), fmt.Sprint(SchemaVersion)}
		}
		if n != SchemaVersion {
			return nil, &UnsupportedError{name, "schema_version", version.String(), fmt.Sprint(SchemaVersion)}
		}
	}
	d := &Document{}
	failed := &FormatError{File: name}
	decode(v, "", failed, d.fields)
	if failed.Path != "" {
		return nil, failed
	}
	if err := d.lengths(); err != nil {
		var at *FormatError
		if errors.As(err, &at) {
			at.File = name
		}
		return nil, err
	}
	return d, nil
}

// lengths checks that lists have the lengths that the contract says, so that
// nothing reads beyond one.
func (d *Document) lengths() error {
	s := Shape{Layers: d.Trace.Layers, Gates: d.Trace.Gates}
	conditions, edges := len(d.Trace.Conditions), len(d.Trace.Edges)
	var err error
	check := func(path string, got, want int) {
		if got != want && err == nil {
			err = &FormatError{"in memory", path, fmt.Sprintf("%d elements", got), fmt.Sprint(want)}
		}
	}
	for i := range d.Traced {
		t, at := &d.Traced[i], fmt.Sprintf("sources[%d]", i)
		check(at+".prompt_tokens_by_condition", len(t.PromptTokens), conditions)
		check(at+".boundary_crossing_tokens_by_condition", len(t.BoundaryCrossing), conditions)
		check(at+".hidden_stages", len(t.Stages), s.Stages())
		check(at+".router_layers", len(t.Gates), len(s.Gates))
		for k := range t.Stages {
			st, at := &t.Stages[k], at+".hidden_stages."+s.StageName(k)
			check(at+".conditions", len(st.Conditions), conditions)
			check(at+".target_comparisons", len(st.Edges), edges)
			for c, row := range st.Conditions {
				check(fmt.Sprintf("%s.conditions[%d]", at, c), len(row), scopes)
				for _, h := range row {
					check(fmt.Sprintf("%s.conditions[%d].shape", at, c), len(h.Shape), 2)
				}
			}
		}
		for k := range t.Gates {
			g, at := &t.Gates[k], at+".router_layers."+LayerName(t.Gates[k].Layer)
			check(at+".conditions", len(g.Conditions), conditions)
			check(at+".target_comparisons", len(g.Edges), edges)
			for c, row := range g.Conditions {
				check(fmt.Sprintf("%s.conditions[%d]", at, c), len(row), scopes)
				for _, r := range row {
					check(fmt.Sprintf("%s.conditions[%d].loads", at, c), len(r.Loads), d.Trace.Experts)
					check(fmt.Sprintf("%s.conditions[%d].weighted_loads", at, c), len(r.WeightedLoads), d.Trace.Experts)
				}
			}
		}
	}
	check("summary.hidden", len(d.Summary.Hidden), s.Stages())
	check("summary.routes", len(d.Summary.Routes), len(s.Gates))
	for k, row := range d.Summary.Hidden {
		check(fmt.Sprintf("summary.hidden[%d]", k), len(row), edges)
	}
	for k, row := range d.Summary.Routes {
		check(fmt.Sprintf("summary.routes[%d]", k), len(row), edges)
	}
	return err
}
