package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// readReport reads a report that a flag names.
func readReport(flag, path string) (*conformance.Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	rep, err := decodeReport(path, data)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return rep, nil
}

// decodeReport is the one place that takes a report's JSON apart.
func decodeReport(path string, data []byte) (*conformance.Report, error) {
	if err := dumpfmt.CheckJSON(path, data); err != nil {
		return nil, err
	}
	var rep conformance.Report
	if err := json.Unmarshal(data, &rep); err != nil {
		return nil, fmt.Errorf("report: %s: %w", path, err)
	}
	if rep.SchemaVersion != conformance.SchemaVersion {
		return nil, fmt.Errorf("report: %s: schema_version: got %d, want %d", path, rep.SchemaVersion, conformance.SchemaVersion)
	}
	return &rep, nil
}
