package conformance_test

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// The router of layer 12 chooses other experts, and behind it an expert of layer 13 has
// a gain: by its own routes the first is found, by the recorded ones the second.
func ExampleRoutes() {
	cfg, err := suite.Embedded()
	if err != nil {
		panic(err)
	}
	planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: "fault-beside-a-flip", Side: conformance.SideReference, Layer: 13})
	if err != nil {
		panic(err)
	}
	planted.Cases, planted.Only = cfg.Cases[:1], []string{"RouteGolden", "ForcedRoutes"}
	rep, err := conformance.Evaluate(context.Background(), planted)
	if err != nil {
		panic(err)
	}
	for _, c := range rep.Checks {
		fmt.Println(c.ID, c.Status, c.Findings[0].Probe)
	}
	// Output:
	// RouteGolden fail blocks.12.router_logits
	// ForcedRoutes fail blocks.13.shared_out
}

// A trace without the last gate of a source.
func ExampleTrace() {
	cfg, err := suite.Embedded()
	if err != nil {
		panic(err)
	}
	open := cfg.Trace.Open
	cfg.Trace.Open = func(ctx context.Context) (*conformance.Traced, error) {
		of, err := open(ctx)
		if err != nil {
			return nil, err
		}
		d := *of.Document
		d.Traced = append(d.Traced[:0:0], d.Traced...)
		d.Traced[1].Gates = d.Traced[1].Gates[:25]
		return &conformance.Traced{Document: &d, Sources: of.Sources}, nil
	}
	cfg.Cases, cfg.Only = cfg.Cases[:1], []string{"TraceShape", "TraceHashes"}
	rep, err := conformance.Evaluate(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	for _, c := range rep.Checks {
		fmt.Println(c.ID, c.Status)
		for _, f := range c.Findings {
			fmt.Println(f.Detail)
		}
	}
	// Output:
	// TraceShape fail
	// sources[suite/second].router_layers: gates: got 25, want 26
	// TraceHashes skip
}
