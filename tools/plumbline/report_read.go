package main

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
)

// readReport reads a report that a flag names.
func readReport(flag, path string) (*conformance.Report, error) {
	rep, err := report.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return rep, nil
}
