// Package report renders a conformance report for people and for other tools: text
// for a terminal, Markdown for a pull request, JUnit for a CI system, one HTML page
// without outside parts. All of them come from one [conformance.Report], which
// [Read] takes from the JSON that a run wrote, so nothing is shown that the JSON
// doesn't say.
//
// Rendering decides nothing: conclusion, sources and bounds are the report's.
// Strings in a report are a candidate's own (names, messages, files) and are
// written as text, whatever they hold.
package report
