package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// addCompletion adds cobra's command that prints a shell's script, and what flags
// complete to.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			// Without a shell nothing is done, which must not look like success.
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(_ *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usageErrorf("completion: got the shell %q, want bash, zsh, fish or powershell", args[0])
				}
				return usageErrorf("completion: got no shell, want bash, zsh, fish or powershell")
			}
		}
	}
	completeFlags(root)
}

// Flags that name a folder, a file with one of these endings, or one of a few words.
// Any other flag's value is completed as the shell completes a file.
var (
	folderFlags = []string{"candidate", "golden", "ref", "cand", "ref-repeat", "out", "plots", "model-dir", "aa", "from"}
	fileFlags   = map[string][]string{
		"model":     {"gguf"}, // or a folder
		"prompts":   {"jsonl"},
		"sources":   {"jsonl"},
		"case":      {"json"},
		"groups":    {"json"},
		"document":  {"json"},
		"baseline":  {"json"},
		"waivers":   {"json"},
		"costs":     {"json"},
		"csv":       {"csv"},
		"from-csv":  {"csv"},
		"inventory": {"json"},
	}
	wordFlags = map[string][]string{
		"color":     {"auto", "always", "never"},
		"backend":   {"go"},
		"layers":    {dumpfmt.LayersFloat32, dumpfmt.LayersInt8Scaled},
		"logits":    {dumpfmt.LogitsFloat32, dumpfmt.LogitsInt32},
		"format":    {"text", "markdown", "junit", "html", "json"},
		"scale":     {scaleOfficial, scaleTransformers},
		"attention": {attentionFused, attentionEager},
	}
)

// completeFlags tells the shell what the values of flags are, in a command and all
// below it.
func completeFlags(cmd *cobra.Command) {
	words := func(flag string, values []string) {
		// An error means that the command has said it itself.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	of := func(f *pflag.Flag) {
		if values, ok := wordFlags[f.Name]; ok && f.Value.Type() != "bool" {
			words(f.Name, values)
		}
	}
	cmd.Flags().VisitAll(of)
	cmd.PersistentFlags().VisitAll(of)
	if cmd.Flags().Lookup("only") != nil {
		words("only", checkIDs())
	}
	for _, name := range folderFlags {
		_ = cmd.MarkFlagDirname(name) // an error: the command has no such flag
	}
	for name, ends := range fileFlags {
		_ = cmd.MarkFlagFilename(name, ends...)
	}
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}
