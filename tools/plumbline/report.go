package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

type reportFlags struct {
	out, format string
	schema      bool
}

func newReport(a *app) *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE [--out DIR | --format FORMAT] | --schema",
		Short: "Render a report.json again: text, Markdown, JUnit, HTML",
		Long: `report reads a report.json, as gate --report, a client's test or merge wrote it, and
renders it. Without --out it prints one format. FILE - is standard input.

A report is read strictly: one of another schema version, one that was cut off, and one
whose checks contradict its conclusion are refused.

Formats: text (the default), markdown (for a comment on a pull request or a step's
summary, at most 65,536 bytes), junit, html and json.

The verdict in the report does not change the exit code: 0 is rendered, 2 is not.`,
		Example: `  plumbline report out/report.json
  plumbline report out/report.json --out pages
  plumbline report out/report.json --out out --overwrite
  plumbline report out/report.json --format markdown >> "$GITHUB_STEP_SUMMARY"
  plumbline report - --format junit < out/report.json > junit.xml
  plumbline report --schema > report.schema.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if f.schema != (len(args) == 0) || len(args) > 1 {
				return usageErrorf("got %s, want one report.json, or --schema alone", plural(len(args), "argument"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.report(args, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.out, "out", "", "folder, new or empty, that gets report.json, report.md, junit.xml and report.html")
	fl.StringVar(&f.format, "format", "", "what is printed without --out: text, markdown, junit, html or json")
	fl.BoolVar(&f.schema, "schema", false, "print the JSON Schema of a report")
	a.overwriteFlag(cmd)
	return cmd
}

func (a *app) report(args []string, f reportFlags) error {
	if f.schema {
		return a.emit(report.Schema())
	}
	format := report.Format(f.format)
	switch {
	case f.out != "" && f.format != "":
		return usageErrorf("--out and --format: got both, want one: --out writes all formats")
	case f.out == "" && a.overwrite:
		return usageErrorf("--overwrite needs --out")
	case a.json && f.format != "" && format != report.FormatJSON:
		return usageErrorf("--json and --format %s: got both, want one", f.format)
	case a.json:
		format = report.FormatJSON
	case f.format == "":
		format = report.FormatText
	}
	if !report.Known(format) {
		return usageErrorf("--format: got %q, want text, markdown, junit, html or json", f.format)
	}
	rep, err := openReport(args[0])
	if err != nil {
		return err
	}
	switch {
	case f.out != "" && a.overwrite:
		return report.OverwriteFolder(f.out, rep)
	case f.out != "":
		err := report.WriteFolder(f.out, rep)
		if errors.Is(err, report.ErrNotEmpty) {
			return fmt.Errorf("%w: --overwrite replaces the report in it", err)
		}
		return err
	case format == report.FormatText:
		return a.emitReport(rep)
	}
	var b bytes.Buffer
	if err := report.Write(&b, rep, format); err != nil {
		return err
	}
	return a.emit(b.Bytes())
}

func openReport(path string) (*conformance.Report, error) {
	if path == "-" {
		return report.Read(os.Stdin)
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if _, err := os.Stat(filepath.Join(path, report.JSONFile)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: got a folder without %s, want a report.json", dumpfmt.Printable(path), report.JSONFile)
		}
		path = filepath.Join(path, report.JSONFile)
	}
	return report.ReadFile(path)
}
