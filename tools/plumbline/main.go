// Command plumbline tells whether an inference engine still computes its model,
// and where the first wrong number is.
//
// Exit codes of every subcommand: 0 conforms or done; 1 does not conform, a
// malformed candidate file included; 2 the run itself broke (bad flag, model or
// golden); 3 nothing, or a Core check nowhere, could be judged. Results go to
// standard output, progress and errors to standard error.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }
