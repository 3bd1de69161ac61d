// Command plumbline tells whether an inference engine still computes its model,
// and where the first wrong number is.
//
// Exit codes of every subcommand: 0 conforms or done; 1 does not conform, a
// malformed candidate file included; 2 the run itself broke (bad flag, model or
// golden); 3 nothing, or a Core check nowhere, could be judged. Results go to
// standard output, progress and errors to standard error.
//
// Each subcommand is a file of its own with its help and examples, and an entry in
// subcommands. The command line decides nothing about engines: checks and bounds are
// package conformance's, formats are dumpfmt's. Every command that a document or a help
// text shows is run by testdata/docs, or TestDocumentedCommands says what
// runs it.
package main
