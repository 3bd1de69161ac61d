package main

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// showsColours turns on the sequences that colour text. A console that doesn't know them
// would print them.
func showsColours(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	console, mode := windows.Handle(f.Fd()), uint32(0)
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
