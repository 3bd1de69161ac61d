package conformance_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// An int8 engine in which layer 7 uses the gate projection for the up
// projection and the other way round.
func ExampleEvaluate() {
	ckpt, err := reference.LoadFS(fixtures.SeededModel(), ".")
	if err != nil {
		panic(err)
	}
	defer ckpt.Close()
	ref, err := reference.New(ckpt)
	if err != nil {
		panic(err)
	}
	prompts, err := fixtures.SeededPrompts()
	if err != nil {
		panic(err)
	}
	swapped, err := mutant.Lookup("gate-up-swapped")
	if err != nil {
		panic(err)
	}
	faulty, err := swapped.Weights(ckpt, 7)
	if err != nil {
		panic(err)
	}
	rep, err := conformance.Evaluate(context.Background(), conformance.Config{
		Reference: ref,
		Yardstick: quant.New(ref),
		Candidate: quant.FromWeights(faulty, quant.KVCacheInt8()).Candidate(engine.Scheme{RowsInt8: true}),
		Cases:     prompts,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(rep.Conclusion, *rep.FirstBadRow, *rep.Source, *rep.Kind)
	// Output: fails 8 blocks.7.resid_post layer
}

// Two builds that promise the same bits, and differ in one code.
func ExampleExact() {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for build, code := range map[string]int8{"v1": 5, "v2": 6} {
		if err := oneRow(filepath.Join(dir, build), code); err != nil {
			panic(err)
		}
	}
	rep, err := conformance.Exact(context.Background(), filepath.Join(dir, "v1"), filepath.Join(dir, "v2"))
	if err != nil {
		panic(err)
	}
	f := rep.Failures()[0].Findings[0]
	fmt.Printf("%s: row %d, channel %d: got %v, want %v\n", rep.Conclusion, f.At.Row, f.At.Channel, f.Got, f.Limit.Value)
	// Output: fails: row 0, channel 1: got 6, want 5
}

func oneRow(dir string, code int8) error {
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "toy", Layers: engine.LayersInt8Scaled}, dumpfmt.WriteOptions{})
	if err != nil {
		return err
	}
	c, err := w.Case("hello", dumpfmt.CaseFile{Text: "hello", TokenIDs: []int{1}})
	if err != nil {
		return err
	}
	l, err := c.Int8Layers(1, 2)
	if err != nil {
		return err
	}
	if err := l.WriteRow(dumpfmt.Scale{M: 1 << 30, E: -36}, []int8{1, code}); err != nil {
		return err
	}
	if err := l.Commit(); err != nil {
		return err
	}
	return c.Commit()
}

// A check that names no planted fault it must fail on is refused.
func ExampleRegistry_Register() {
	var r conformance.Registry
	err := r.Register(&conformance.Check{
		ID: "AlwaysFine", Rule: "nothing is ever wrong", Sides: []conformance.Side{conformance.SideCandidate},
		Judge: func(*conformance.Evidence, conformance.Side) conformance.Outcome {
			return conformance.Outcome{Status: conformance.Pass}
		},
	})
	fmt.Println(err)
	// Output: conformance: check AlwaysFine: no control: a check that cannot fail is not a check
}

// A teacher's files are judged beside the candidate.
func ExampleTeacher() {
	cfg, err := suite.Embedded()
	if err != nil {
		panic(err)
	}
	cfg.Only = []string{"PlanReceipts", "TargetFraming", "TargetFinite"}
	// One value of the target that isn't finite.
	data := make([]byte, cfg.Teacher.TargetBytes)
	if _, err := cfg.Teacher.Target.ReadAt(data, 0); err != nil {
		panic(err)
	}
	copy(data[len(data)-4:], []byte{0, 0, 0xC0, 0x7F})
	cfg.Teacher.Target = bytes.NewReader(data)
	rep, err := conformance.Evaluate(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	for _, c := range rep.Checks {
		fmt.Println(c.ID, c.Status, c.Findings)
	}
	fmt.Println(rep.Conclusion)
	// Output:
	// PlanReceipts pass []
	// TargetFraming skip []
	// TargetFinite fail [row 25: value 639 at byte 0x10A32: got 1, want 0 (a readable file), target.bin: dumpfmt: target file target.bin: row 25: value 639 at byte 0x10A32: got NaN, want a finite value]
	// fails
}
