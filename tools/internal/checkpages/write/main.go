package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/internal/checkpages"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(2)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("got %d arguments, want one folder", len(args))
	}
	files, err := checkpages.Files(conformance.Builtin().Checks())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[0], 0o777); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(args[0], "*.md"))
	for _, path := range old {
		if _, ok := files[filepath.Base(path)]; !ok {
			err = errors.Join(err, os.Remove(path))
		}
	}
	for name, data := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(args[0], name), data, 0o666))
	}
	return err
}
