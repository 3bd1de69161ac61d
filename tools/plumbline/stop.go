package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// stopFlags are the ids that end an output.
type stopFlags struct {
	ids   []int
	given bool // on the command line
}

func (f *stopFlags) register(cmd *cobra.Command, usage string) {
	cmd.Flags().IntSliceVar(&f.ids, "stop", []int{151645, 151643}, usage)
}

// check refuses what no vocabulary has.
func (f *stopFlags) check(cmd *cobra.Command) error {
	f.given = cmd.Flags().Changed("stop")
	for _, id := range f.ids {
		if id < 0 {
			return usageErrorf("--stop: got %d, want token ids", id)
		}
	}
	return nil
}

// within is what of the flag the model can produce. An id that it can't is a
// mistake of whoever gave it; those that nobody gave are those of one family of
// models, and go unsaid no further than standard error.
func (f *stopFlags) within(a *app, vocab int) ([]int, error) {
	known := []int{}
	var unknown []string
	for _, id := range f.ids {
		switch {
		case id < vocab:
			known = append(known, id)
		case f.given:
			got, want := outsideVocabulary(id, vocab)
			return nil, fmt.Errorf("--stop: got %s, want %s", got, want)
		default:
			unknown = append(unknown, fmt.Sprint(id))
		}
	}
	if len(unknown) > 0 {
		a.warn("--stop: of the default, which is Qwen2.5's, this model's vocabulary (0 to %[2]d) has no %[1]s", strings.Join(unknown, ", "), vocab-1)
	}
	return known, nil
}

// stopOutside is the first of a case's own stop ids that the model can't
// produce; got is empty when there is none.
func stopOutside(ids []int, vocab int) (at int, got, want string) {
	for i, id := range ids {
		if id >= vocab {
			got, want = outsideVocabulary(id, vocab)
			return i, got, want
		}
	}
	return -1, "", ""
}

func outsideVocabulary(id, vocab int) (got, want string) {
	return fmt.Sprint(id), fmt.Sprintf("0 to %d, the model's vocabulary", vocab-1)
}
