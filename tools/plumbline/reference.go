package main

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine/reference"
)

// openReference loads the checkpoint that --model names, in the arithmetic that
// --dtype asks for. Config keys and tensors that the engine doesn't use are named
// on standard error: what nobody reads is how a model is silently computed wrong.
func (a *app) openReference() (*reference.Engine, error) {
	path := a.modelPath()
	if path == "" {
		return nil, usageErrorf("no model: give --model, or set %s", modelEnv)
	}
	var opts []reference.Option
	switch a.dtype {
	case "float32", "float64":
		opts = append(opts, reference.WithDType(reference.DType(a.dtype)))
	case "bfloat16":
		return nil, usageErrorf("--dtype bfloat16 is not supported yet, only float32 and float64")
	default:
		return nil, usageErrorf("--dtype: got %q, want float32 or float64", a.dtype)
	}
	if a.backend != "" {
		opts = append(opts, reference.WithBackend(a.backend))
	}
	ckpt, err := reference.Load(path)
	if err != nil {
		return nil, err
	}
	if !a.quiet {
		a.notUsed("config keys", ckpt.UnusedKeys())
		a.notUsed("tensors", ckpt.UnusedTensors())
	}
	return reference.New(ckpt, opts...)
}

func (a *app) notUsed(what string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(a.stderr, "plumbline: %s not used: %s\n", what, printables(names, 20))
	}
}
