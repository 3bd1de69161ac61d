// Command write writes the pages of all checks into a folder and removes those of
// checks that are no more. `make docs` runs it on conformance/checks.
//
// It writes what package checkpages says and has no flags; git shows what changed.
package main
