package engine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/plumbline-go/plumbline/engine"
)

// A program that answers with a float dump of one row: 32 bytes of header (1
// row of width 1, the FNV-1a 64 of "a", capture mode 1) and the float32 1.
func ExampleExec() {
	script := `printf "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\214\354\1\206\114\334\143\257\1\0\0\0\0\0\0\0\0\0\200\77" > "$2"`
	candidate, err := engine.Exec("sh -c '"+script+"' sh {ids} {layers}", engine.ProgramOptions{
		Info: &engine.Info{Name: "one row", Layers: engine.LayersFloat32},
	})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := candidate.Run(context.Background(), engine.Request{Case: engine.Case{Name: "x", Text: "a", TokenIDs: []int{64}}})
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float64, 1)
	if _, err := answer.Layers.Row(0, row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(row)
	if err := answer.Close(); err != nil { // removes the temporary folder
		log.Fatal(err)
	}
	// Output: [1]
}

func ExampleProtocol() {
	candidate, err := engine.Protocol(`sh -c 'read hello; echo "{\"plumbline\":1,\"name\":\"shy\"}"
		while read request; do echo "{\"unsupported\":\"not today\"}"; done'`, engine.ProgramOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := candidate.Close(); err != nil {
			log.Fatal(err)
		}
	}()
	info, err := candidate.Info(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Name)
	_, err = candidate.Run(context.Background(), engine.Request{Case: engine.Case{Name: "x", Text: "a", TokenIDs: []int{64}}})
	fmt.Println(err)
	// Output:
	// shy
	// engine: case "x" not supported: not today
}

func ExampleFunc() {
	candidate := engine.Func{
		Side: engine.Info{Name: "constant", Layers: engine.LayersFloat32},
		Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
			layers, err := engine.FloatRows(req.Case.Text, [][]float32{{1, 2}, {3, 4}})
			return &engine.Response{Layers: layers}, err
		},
	}
	answer, err := candidate.Run(context.Background(), engine.Request{Case: engine.Case{Name: "x", Text: "a", TokenIDs: []int{64}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Layers.Header().Rows, "rows")
	// Output: 2 rows
}

// A Go value that offers two places at both positions of a prompt: the more
// places there are, the more exactly a fault is located.
func ExampleFunc_probes() {
	candidate := engine.Func{
		Side: engine.Info{Name: "constant"},
		Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
			positions := len(req.Case.TokenIDs)
			return &engine.Response{PromptIDs: req.Case.TokenIDs, Probes: engine.ProbeValues{
				engine.ProbeEmbed:             {Rows: positions, Width: 2, Data: []float32{1, 2, 3, 4}},
				engine.Block(0, engine.PartQ): {Rows: positions, Width: 3, Data: []float32{1, 2, 3, 4, 5, 6}},
			}}, nil
		},
	}
	answer, err := candidate.Run(context.Background(), engine.Request{Case: engine.Case{Name: "x", Text: "ab", TokenIDs: []int{64, 65}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range answer.Probes.Probes() {
		m, err := answer.Probes.Matrix(p)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p, "at position 1:", m.Row(1))
	}
	// Output:
	// blocks.0.q at position 1: [4 5 6]
	// embed at position 1: [3 4]
}
