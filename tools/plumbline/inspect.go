package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/tools/internal/inspect"
)

func newInspect(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect {FILE | FOLDER}",
		Short: "Say what a dump, a safetensors or GGUF file, a case file, a dump folder or a model folder holds",
		Long: `A dump carries no type. inspect tries every reader on a FILE and prints each reading
that fits its size; engine.json beside it, or the ending of its name, says which one
is meant. A FOLDER's cases are all opened, broken ones are named. A FOLDER with a
config.json and no engine.json is a Hugging Face model, summed up from the config and
the headers of its safetensors files.

Exit codes: 0 done; 1 malformed, or no format fits; 2 no such file; 3 a folder without
a case.`,
		Example: `  plumbline inspect dumps/capital.layers.bin
  plumbline inspect dumps --json
  plumbline inspect model.safetensors
  plumbline inspect model.gguf`,
		Args: exactArgs(1, "one FILE or FOLDER"),
		RunE: func(_ *cobra.Command, args []string) error { return runInspect(a, args[0]) },
	}
}

func runInspect(a *app, path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return inspectError(err)
	}
	if st.IsDir() && inspect.NamedLikeFile(path) {
		return &exitError{exitFails, fmt.Errorf("inspect: %s: got a folder, want a regular file: its name is that of a dump", dumpfmt.Printable(path))}
	}
	switch {
	case st.IsDir() && inspect.IsModel(path):
		m, err := inspect.Model(path)
		if err != nil {
			return inspectError(err)
		}
		return a.show(m, func(w io.Writer) { printModel(w, m) })
	case st.IsDir():
		r, err := inspect.Folder(path)
		if err != nil {
			return inspectError(err)
		}
		if err := a.show(r, func(w io.Writer) { printFolder(w, r) }); err != nil {
			return err
		}
		if n := r.Broken(); n > 0 {
			return &exitError{exitFails, fmt.Errorf("inspect: %s: %d of %d cases are broken", path, n, len(r.Cases))}
		}
		return nil
	case filepath.Base(path) == "engine.json":
		s, err := inspect.EngineFile(path)
		if err != nil {
			return inspectError(err)
		}
		return a.show(s, func(w io.Writer) { printSide(w, *s) })
	case filepath.Ext(path) == ".json":
		c, err := inspect.CaseFile(path)
		if err != nil {
			return inspectError(err)
		}
		return a.show(c, func(w io.Writer) { printCases(w, []inspect.CaseReport{*c}) })
	}
	r, err := inspect.File(path)
	if r != nil {
		if err := a.show(r, func(w io.Writer) { printFile(w, r) }); err != nil {
			return err
		}
	}
	return inspectError(err)
}

// inspectError names the command, and gives a broken file exit code 1 and an
// empty folder 3.
func inspectError(err error) error {
	if err == nil {
		return nil
	}
	var format *dumpfmt.FormatError
	var unsupported *dumpfmt.UnsupportedError
	var malformed *inspect.MalformedError
	var none *dumpfmt.NoCasesError
	named := err
	if !errors.As(err, &malformed) { // which names it
		named = fmt.Errorf("inspect: %w", err)
	}
	switch {
	case errors.As(err, &none):
		return &exitError{exitNotJudged, named}
	case errors.As(err, &malformed) && malformed.Declared == "":
		return &exitError{exitFails, fmt.Errorf("inspect: %s: no format fits", dumpfmt.Printable(malformed.File))} // the report says more
	case errors.As(err, &malformed), errors.As(err, &format), errors.As(err, &unsupported):
		return &exitError{exitFails, named}
	}
	return named
}

// show prints v as JSON, or as text.
func (a *app) show(v any, text func(io.Writer)) error {
	if a.json {
		return a.emitJSON(v)
	}
	var b bytes.Buffer
	text(&b)
	return a.emit(b.Bytes())
}

func printFile(w io.Writer, r *inspect.Report) {
	fmt.Fprintf(w, "%s: %d bytes\n", dumpfmt.Printable(r.File), r.Bytes)
	for _, x := range r.Readings {
		how := "fits"
		if x.Declared {
			how = "fits, declared"
		}
		if !x.Exact {
			how += fmt.Sprintf(", leaving %d trailing bytes", x.TrailingBytes)
		}
		fmt.Fprintf(w, "%s (%s)\n", x.Format, how)
		switch x.Format {
		case inspect.FloatLayers, inspect.Int8Layers:
			fmt.Fprintf(w, "  %d rows x %d hidden_size, prompt_fingerprint %s, capture mode %d\n", x.Rows, x.Width, x.Fingerprint, x.CaptureMode)
		case inspect.FloatLogits, inspect.Int32Logits:
			fmt.Fprintf(w, "  %d rows x %d vocab\n", x.Rows, x.Vocab)
		case inspect.Safetensors, inspect.GGUF:
			tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
			for _, k := range x.Keys {
				fmt.Fprintf(tw, "  %s\t%s\n", dumpfmt.Printable(k.Name), dumpfmt.Printable(shortened(k.Value)))
			}
			tw.Flush()
			fmt.Fprintf(w, "  %d tensors\n", len(x.Tensors))
			for _, t := range x.Tensors {
				fmt.Fprintf(tw, "  %s\t%s\t%v\n", dumpfmt.Printable(t.Name), t.DType, t.Shape)
			}
			tw.Flush()
		}
		if v := x.Values; v != nil {
			fmt.Fprintf(w, "  row norms %.4g to %.4g%s%s%s\n", v.MinNorm, v.MaxNorm,
				rowList("non-finite", v.NonFiniteRows), rowList("constant", v.ConstantRows), rowList("all-zero", v.AllZeroRows))
		}
	}
	if len(r.Readings) == 0 && len(r.Refused) > 2 {
		// The name left everything open. What six readers make of bytes that aren't
		// theirs helps nobody.
		var tried []string
		for _, x := range r.Refused {
			tried = append(tried, x.Format)
		}
		fmt.Fprintf(w, "none of the formats fits: %s (--json has each reader's reason)\n", strings.Join(tried, ", "))
		return
	}
	for _, x := range r.Refused {
		fmt.Fprintf(w, "%s doesn't fit: %s\n", x.Format, x.Why)
	}
}

func printModel(w io.Writer, m *inspect.ModelReport) {
	kind := dumpfmt.Printable(m.Type)
	if kind == "" {
		kind = "without a model_type"
	}
	fmt.Fprintf(w, "%s: Hugging Face model folder, %s, %s, hidden_size %d, vocab %d\n", dumpfmt.Printable(m.Folder), kind, plural(m.Layers, "layer"), m.Hidden, m.Vocab)
	if len(m.Files) == 0 {
		fmt.Fprintln(w, "no safetensors files")
		return
	}
	var types []string
	for _, t := range slices.Sorted(maps.Keys(m.DTypes)) {
		types = append(types, fmt.Sprintf("%d %s", m.DTypes[t], t))
	}
	fmt.Fprintf(w, "%s: %s (%s), %s\n", strings.Join(printableCells(m.Files), " "), plural(m.Tensors, "tensor"), strings.Join(types, ", "), plural(int(m.Parameters), "parameter"))
}

// shortened cuts a text, such as a chat template, to what fits a line.
func shortened(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

func rowList(what string, rows []int) string {
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s rows %s", what, strings.Trim(fmt.Sprint(rows), "[]"))
}

func printSide(w io.Writer, s inspect.Side) {
	fmt.Fprintf(w, "engine %s", dumpfmt.Printable(s.Name))
	for _, d := range [][2]string{{"version", s.Version}, {"model", s.Model}, {"layers", s.Layers}, {"logits", s.Logits}} {
		if d[1] != "" {
			fmt.Fprintf(w, ", %s %s", d[0], dumpfmt.Printable(d[1]))
		}
	}
	fmt.Fprintln(w)
}

func printFolder(w io.Writer, r *inspect.FolderReport) {
	fmt.Fprintf(w, "%s: dump folder, %s\n", dumpfmt.Printable(r.Folder), plural(len(r.Cases), "case"))
	printSide(w, r.Side)
	printCases(w, r.Cases)
}

func printCases(w io.Writer, cases []inspect.CaseReport) {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "case\tprompt tokens\toutput tokens\tprompt_fingerprint\tfiles")
	for _, c := range cases {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%s\t%s\n", dumpfmt.Printable(c.Name), c.Tokens, c.Output, c.Fingerprint, strings.Join(printableCells(c.Files), " "))
	}
	tw.Flush()
	for _, c := range cases {
		if c.Error != "" {
			fmt.Fprintf(w, "broken: %s: %s\n", dumpfmt.Printable(c.Name), dumpfmt.Printable(c.Error))
		}
		for _, n := range c.Notes {
			printLine(w, "note: %s: %s", dumpfmt.Printable(c.Name), n)
		}
	}
}
