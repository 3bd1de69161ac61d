package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/sebdah/goldie/v2"

	"github.com/plumbline-go/plumbline/conformance"
	_ "github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"

	"example.com/tinyllm/tinyllm"
)

// Flags of this test, with names that a library may not take: those of Plumbline's
// own commands and tests, and goldie's -update beside them.
var (
	_      = flag.Bool("update-decode", false, "this module's own")
	model  = flag.String("model", "", "checkpoint; default the one that Plumbline brings")
	_      = flag.String("candidate", "", "this module's own")
	_      = flag.String("golden", "", "this module's own")
	report = flag.String("report", "", "this module's own")
)

// TestTranscript: goldie with -update (go test ./golden -update) lives beside an
// import of all that a client needs of Plumbline.
func TestTranscript(t *testing.T) {
	dir := *model
	if dir == "" {
		dir = t.TempDir()
		if err := os.CopyFS(dir, fixtures.Model()); err != nil {
			t.Fatal(err)
		}
	}
	m, err := tinyllm.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := m.Run([]int{69, 700}, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	goldie.New(t).Assert(t, "transcript", []byte(Transcript(out)))
	if *report != "" {
		t.Logf("-report %s is this test's own flag", *report)
	}
	ckpt, err := reference.LoadFS(fixtures.Model(), ".")
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	if len(conformance.Builtin().Checks()) == 0 {
		t.Error("got no check")
	}
}
