//go:build !windows

package main

import "io"

// showsColours: terminals of other systems do.
func showsColours(io.Writer) bool { return true }
