package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

func ExampleDir() {
	dir, err := os.MkdirTemp("", "engine")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "my engine", Layers: dumpfmt.LayersFloat32}, dumpfmt.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := w.Case("hello", dumpfmt.CaseFile{Text: "hello", TokenIDs: []int{17}})
	if err != nil {
		log.Fatal(err)
	}
	layers, err := c.FloatLayers(2, 2)
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(layers.WriteRow([]float32{1, 2}), layers.WriteRow([]float32{3, 4}), layers.Commit(), c.Commit())
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	candidate := engine.Dir(dir)
	cases, err := candidate.Cases(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range cases {
		answer, err := candidate.Run(ctx, engine.Request{Case: c})
		if err != nil {
			log.Fatal(err)
		}
		row := make([]float64, answer.Layers.Header().Width)
		for i := range answer.Layers.Header().Rows {
			if _, err := answer.Layers.Row(i, row); err != nil {
				log.Fatal(err)
			}
			fmt.Println(c.Name, engine.RowProbe(i), row)
		}
		if err := answer.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// hello embed [1 2]
	// hello blocks.0.resid_post [3 4]
}
