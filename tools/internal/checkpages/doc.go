// Package checkpages renders what the registry knows of a check: as a page of
// Markdown below conformance/checks, and as text for a terminal.
//
// The same content stands in both: rule, what it catches, level, sides, what it
// needs, where its limits come from, its planted faults and how to run it alone.
// [Files] is the whole folder, index included; `make docs` writes it, and a test fails
// when a committed page is stale, missing or of no check.
//
// It judges nothing and knows nothing of its own about a check: what is missing in a
// page is missing in the registry.
package checkpages
