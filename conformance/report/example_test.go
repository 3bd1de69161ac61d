package report_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
)

// sound is the JSON of a report on which nothing was judged.
func sound() *bytes.Buffer {
	rep, err := conformance.Evaluate(context.Background(), conformance.Config{}) // asks no engine
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := rep.WriteJSON(&b); err != nil {
		panic(err)
	}
	return &b
}

// A report that a run wrote, rendered for a terminal.
func ExampleRead() {
	rep, err := report.Read(sound())
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	if err := report.Text(&b, rep, report.TextOptions{}); err != nil {
		panic(err)
	}
	fmt.Println(strings.SplitN(b.String(), "\n", 2)[0])
	// Output: conclusion: nothing judged
}

// A truncated file is refused with the place where it ends.
func ExampleRead_halfWritten() {
	whole := sound().Bytes()
	_, err := report.Read(bytes.NewReader(whole[:20]))
	fmt.Println(err)
	// Output: report: byte 20: /schema_version: got the end of the file, want the rest of the report: it was cut off
}

// All the files of a report, for a client that keeps its own.
func ExampleWriteFolder() {
	rep, err := report.Read(sound())
	if err != nil {
		panic(err)
	}
	tmp, err := os.MkdirTemp("", "report")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(tmp)
	if err := report.WriteFolder(filepath.Join(tmp, "out"), rep); err != nil {
		panic(err)
	}
	files, err := os.ReadDir(filepath.Join(tmp, "out"))
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		fmt.Println(f.Name())
	}
	// Output:
	// junit.xml
	// report.html
	// report.json
	// report.md
}
