package client_test

import (
	"context"
	"testing"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"

	"example.com/tinyllm/tinyllm"
)

// A Go value: the engine is a library of this module.
func TestValue(t *testing.T) {
	m := load(t)
	conformance.Run(t, conformance.Config{Reference: reference(t), Cases: cases(t), Candidate: engine.Func{
		Side: engine.Info{Name: tinyllm.Side.Name, Layers: engine.LayersFloat32, Logits: engine.LogitsFloat32, DType: "float32"},
		Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
			return respond(m, req)
		},
	}})
}

// A folder of dumps, written here; an engine elsewhere writes it however it likes.
func TestFolder(t *testing.T) {
	conformance.Run(t, conformance.Config{
		Reference: reference(t),
		Candidate: engine.Dir(dumps(t)),
	})
}

// A program that is run once per prompt.
func TestExec(t *testing.T) {
	program, err := engine.Exec(build(t)+" --model "+modelDir(t)+" --ids {ids} --text-file {text_file} --out {dir}", engine.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conformance.Run(t, conformance.Config{Reference: reference(t), Candidate: program, Cases: cases(t)})
}

// One process that answers lines of JSON.
func TestProtocol(t *testing.T) {
	program, err := engine.Protocol(build(t)+" --serve --model "+modelDir(t), engine.ProgramOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	conformance.Run(t, conformance.Config{Reference: reference(t), Candidate: program, Cases: cases(t)})
}
