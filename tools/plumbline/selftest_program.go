package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// declaration is what a program says of itself: in its engine.json, in flags for it, or
// in the handshake.
type declaration struct {
	// Protocol is the version that the handshake agreed on, 0 for a program that is
	// run per case.
	Protocol int `json:"protocol,omitempty"`
	engine.Info
	// Probes and Smoke are of the handshake alone.
	Probes []engine.Probe `json:"probes,omitempty"`
	Smoke  *bool          `json:"smoke,omitempty"`
}

func (a *app) selftestProgram(ctx context.Context, f *programFlags) error {
	p, err := f.open()
	if err != nil {
		return err
	}
	out := selftestResult{Holds: true}
	// Whoever can't say what it is fails on the fakes with the same error.
	if d, err := p.declares(ctx); err == nil {
		out.Declares = &d
	}
	results, err := conformance.Smoke(ctx, p)
	closed := p.close()
	if err != nil {
		return err
	}
	out.Fakes = results
	for _, r := range results {
		out.Holds = out.Holds && r.Holds
	}
	if closed != nil {
		out.Holds = false
		out.Fakes = append(out.Fakes, conformance.SmokeResult{Case: "the end", Why: closed.Error()})
	}
	if err := a.emitSelftest(out, fakesText); err != nil {
		return err
	}
	return holdsOrFails(out.Holds)
}

// lines are what was declared, a pair of key and value each.
func (d *declaration) lines() [][2]string {
	join := func(names []string) string { return strings.Join(names, ", ") }
	probes := make([]string, len(d.Probes))
	for i, p := range d.Probes {
		probes[i] = string(p)
	}
	all := [][2]string{
		{"name", d.Name}, {"version", d.Version}, {"layers", d.Layers}, {"logits", d.Logits}, {"dtype", d.DType}, {"weights", d.Weights},
		{"activations", d.Activations}, {"kv_cache", d.KVCache}, {"model", d.Model}, {"features", join(d.Features)}, {"probes", join(probes)},
	}
	all = slices.DeleteFunc(all, func(l [2]string) bool { return l[1] == "" })
	if d.Smoke != nil {
		all = append(all, [2]string{"smoke", fmt.Sprint(*d.Smoke)})
	}
	return all
}

func fakesText(r selftestResult) []byte {
	var b bytes.Buffer
	if d := r.Declares; d != nil {
		head := "the program declares"
		if d.Protocol != 0 {
			head = fmt.Sprintf("handshake: protocol version %d; the program declares", d.Protocol)
		}
		fmt.Fprintln(&b, head)
		for _, l := range d.lines() {
			fmt.Fprintf(&b, "  %-11s  %s\n", l[0], dumpfmt.Printable(l[1]))
		}
		fmt.Fprintln(&b)
	}
	t := newTable("fake", "want", "saw", "holds").alignLeft(0, 1, 2)
	for _, f := range r.Fakes {
		note := ""
		if f.Why != "" {
			note = "  " + f.Why
		}
		t.add(note, f.Case, cmpDash(f.Want), cmpDash(f.Saw), yesNo(f.Holds))
	}
	t.print(&b)
	switch d := r.Declares; {
	case !r.Holds:
		fmt.Fprintf(&b, "\nplumbline selftest --help says what a program answers to %s and the other\n", engine.SmokeRight().Name)
	case d != nil && d.Smoke != nil && !*d.Smoke:
		fmt.Fprintf(&b, "\nthe handshake doesn't say \"smoke\":true: gate tests this way only when --smoke asks for it\n")
	}
	return b.Bytes()
}
