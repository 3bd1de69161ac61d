package trace_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// An engine with one layer, traced over one source that came tokenised.
func Example() {
	plan := trace.Plan{
		Conditions: []trace.Condition{{Name: "plain", Boundary: "eos"}, {Name: "system", System: true, Boundary: "eos"}},
		Edges:      []trace.Edge{{Name: "system", Left: "plain", Right: "system"}},
	}
	shape := trace.Shape{Layers: 1, Gates: []int{0}, Hidden: 2, Experts: 4, TopK: 2}
	variants := []trace.Variant{
		{TokenIDs: []int{1, 7, 8}, ContentPositions: []int{1, 2}},
		{TokenIDs: []int{1, 5, 7, 8}, ContentPositions: []int{2, 3}},
	}
	acc, err := trace.NewAccumulator(plan, shape, trace.Float32)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	w, err := trace.NewWriter(filepath.Join(dir, "trace.json"), plan, shape, trace.Float32, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Abort()

	if err := acc.Start(trace.Source{ID: "demo/1", Domain: "demo", Text: "some text"}, variants, nil); err != nil {
		log.Fatal(err)
	}
	for c, v := range variants {
		rows, routes := make([][]float32, len(v.TokenIDs)), trace.Routes{DType: trace.Float32}
		for i, id := range v.TokenIDs {
			rows[i] = []float32{float32(id), float32(c)}
			routes.IDs = append(routes.IDs, []int{id % 4, (id + 1 + c) % 4})
			routes.Weights = append(routes.Weights, []float32{0.75, 0.25})
		}
		for stage := range shape.Stages() {
			if err := acc.Hidden(stage, c, rows); err != nil {
				log.Fatal(err)
			}
		}
		if err := acc.Routes(0, c, routes); err != nil {
			log.Fatal(err)
		}
	}
	source, err := acc.Finish(0.5, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Add(source); err != nil {
		log.Fatal(err)
	}
	head := trace.Head{CapturedAt: "2026-01-01T00:00:00Z", ClaimBoundary: trace.ClaimBoundary()}
	head.Tokenizer.Conditions = plan.Conditions
	done, err := w.Finish(head)
	if err != nil {
		log.Fatal(err)
	}
	edge := done.Summary.Routes[0][0]
	fmt.Println(done.Sources, done.Summary.RouteDecisions, edge.SetExact, edge.Tokens)
	fmt.Printf("%.4f %.2f %.2f\n", edge.MeanJaccard, edge.MeanWeightedTV, edge.LoadTV)

	d, err := trace.Read(done.Path)
	if err != nil {
		log.Fatal(err)
	}
	problems, looked := trace.CheckStatistics(d, trace.Rounding{})
	fmt.Println(len(problems), looked > 0)
	// Output:
	// 1 8 0 2
	// 0.3333 0.25 0.25
	// 0 true
}

// The reference chose experts 0 and 1; the candidate took 2 in place of 1.
func ExampleJudgeRoute() {
	scores := []float64{0.5, 0.25, 0.249, 0.125}
	for _, routing := range []trace.DType{trace.Float32, trace.BFloat16} {
		v := trace.JudgeRoute(scores, []int{0, 1}, []int{2, 0}, trace.TieBand{Routing: routing})
		fmt.Printf("%s %s margin %.3f band %.2g\n", routing, v.Class, v.Margin, v.Band)
	}
	// Output:
	// torch.float32 FLIP margin 0.001 band 3e-08
	// torch.bfloat16 TIE margin 0.001 band 0.002
}
