package report

import (
	_ "embed" // the schema
	"slices"
)

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a report, of the version that
// conformance.SchemaVersion names.
func Schema() []byte { return slices.Clone(schema) }
