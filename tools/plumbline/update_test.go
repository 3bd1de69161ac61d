package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// mayUpdate refuses to rewrite the textual goldens (-update, GOLDIE_UPDATE=1)
// while the suite fails on its own embedded model: what would be written then
// is the output of something broken.
func mayUpdate(args []string, env string, embedded func() (conformance.Config, error)) error {
	asked := env != "" && env != "0" && env != "false"
	for _, a := range args {
		name, value, given := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") || name != "update" {
			continue
		}
		on, err := strconv.ParseBool(value)
		asked = asked || !given || (err == nil && on)
	}
	if !asked {
		return nil
	}
	cfg, err := embedded()
	if err != nil {
		return fmt.Errorf("no update: the embedded suite: %w", err)
	}
	rep, err := conformance.Evaluate(context.Background(), cfg)
	switch {
	case err != nil:
		return fmt.Errorf("no update: the embedded suite: %w", err)
	case rep.ReferenceFailed:
		return errors.New("no update: the reference fails a check of its own; mend that first")
	case len(rep.Failures()) > 0:
		f := rep.Failures()[0]
		return fmt.Errorf("no update: %s fails on case %s of the embedded suite; mend that first", f.ID, f.Case)
	}
	return nil
}

func TestUpdateIsRefusedWhileASelfCheckFails(t *testing.T) {
	slow(t)
	broken := func(side conformance.Side, mutant string, at int) func() (conformance.Config, error) {
		return func() (conformance.Config, error) {
			cfg, err := suite.Embedded()
			require.NoError(t, err)
			return cfg.Mutants(cfg, conformance.Control{Mutant: mutant, Side: side, Layer: at})
		}
	}
	for _, tc := range []struct {
		name     string
		args     []string
		env      string
		embedded func() (conformance.Config, error)
		says     string
	}{
		{"not asked", []string{"-test.v"}, "", func() (conformance.Config, error) { return conformance.Config{}, errors.New("not to be run") }, ""},
		{"sound suite", []string{"-update"}, "", suite.Embedded, ""},
		{"asked for in other words", []string{"-test.v", "--update=1"}, "", func() (conformance.Config, error) { return conformance.Config{}, errors.New("to be run") }, "to be run"},
		{"switched off", []string{"-update=false"}, "0", func() (conformance.Config, error) { return conformance.Config{}, errors.New("not to be run") }, ""},
		{"the reference is broken", []string{"-update"}, "", broken(conformance.SideReference, "shifted-index", -1), "the reference fails"},
		{"the candidate is broken", nil, "1", broken(conformance.SideCandidate, "layer-skipped", 17), "fails on case"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := mayUpdate(tc.args, tc.env, tc.embedded)
			if tc.says == "" {
				assert.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), tc.says)
		})
	}
}
