package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Which build this is: version, commit, Go, system",
		Long: `version says which build this is: the module's version, the commit where the build
knows it and whether files were changed since, the version of Go, and the system.
plumbline --version does the same; reports hold it as "tool".`,
		Example: `  plumbline version
  plumbline --version
  plumbline version --json`,
		Args: exactArgs(0, "none"),
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	t := conformance.Tool()
	if a.json {
		return a.emitJSON(t)
	}
	return a.emit([]byte(versionText(t)))
}

func versionText(t conformance.ToolInfo) string {
	s := "plumbline " + t.Version
	if t.Revision != "" {
		s += ", commit " + t.Revision
		if t.Modified {
			s += " with changes"
		}
	}
	return fmt.Sprintf("%s, %s, %s/%s\n", s, t.Go, t.OS, t.Arch)
}
