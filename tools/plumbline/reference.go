package main

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine/reference"
)

// referenceOptions are --dtype and --backend.
func (a *app) referenceOptions() ([]reference.Option, error) {
	takes := a.dtypes
	if takes == nil { // a command without modelFlag: targets
		takes = dtypes()
	}
	dtype := reference.DType(a.dtype)
	switch {
	case slices.Contains(takes, dtype):
	case slices.Contains(dtypes(), dtype):
		return nil, usageErrorf("--dtype %s: bounds come from a float reference, want %s", dtype, anyOf(takes))
	default:
		return nil, usageErrorf("--dtype: got %q, want %s", a.dtype, anyOf(takes))
	}
	opts := []reference.Option{reference.WithDType(dtype)}
	if a.backend != "" {
		opts = append(opts, reference.WithBackend(a.backend))
	}
	return opts, nil
}

// anyOf joins arithmetics: "a, b or c".
func anyOf(takes []reference.DType) string {
	text := string(takes[0])
	for i, d := range takes[1:] {
		if i == len(takes)-2 {
			text += " or "
		} else {
			text += ", "
		}
		text += string(d)
	}
	return text
}

// checkpoint opens the checkpoint that --model names, once: its headers, not its
// weights. Config keys and tensors that the engine doesn't use are named on
// standard error: what nobody reads is how a model is silently computed wrong.
func (a *app) checkpoint() (*reference.Checkpoint, error) {
	if a.ckpt != nil {
		return a.ckpt, nil
	}
	path := a.modelPath()
	if path == "" {
		return nil, usageErrorf("no model: give --model, or set %s", modelEnv)
	}
	if _, err := a.referenceOptions(); err != nil { // cheaper to tell than anything below
		return nil, err
	}
	ckpt, err := reference.Load(path)
	if err != nil {
		return nil, err
	}
	a.notUsed("config keys", ckpt.UnusedKeys())
	a.notUsed("tensors", ckpt.UnusedTensors())
	for _, note := range ckpt.Notes() {
		a.warn("%s", note)
	}
	a.ckpt = ckpt
	return ckpt, nil
}

// openReference makes the reference of the checkpoint that --model names, in the
// arithmetic that --dtype asks for.
func (a *app) openReference() (*reference.Engine, error) {
	ckpt, err := a.checkpoint()
	if err != nil {
		return nil, err
	}
	opts, err := a.referenceOptions()
	if err != nil {
		return nil, err
	}
	return reference.New(ckpt, opts...)
}

func (a *app) notUsed(what string, names []string) {
	if len(names) > 0 {
		a.warn("%s not used: %s", what, printables(names, 20))
	}
}

// warn is a line on standard error about something that ends nothing.
func (a *app) warn(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, "plumbline: %s\n", fmt.Sprintf(format, args...))
	}
}
