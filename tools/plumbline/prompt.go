package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// promptFlags say which prompt a command runs.
type promptFlags struct {
	prompt           *string // PROMPT; nil when there is none
	system, caseFile string
	ids              string
	templated        bool
	// From here on, what check made of them. needsText says that ids alone aren't
	// enough.
	needsText   bool
	systemGiven bool
	tokenIDs    []int
	read        *dumpfmt.CaseFile // of --case
}

// promptHelp is what a command's help says about them.
const promptHelp = `PROMPT is what a user says: the chat template of the model's folder makes the text of
it and of --system, the tokenizer the ids. --templated says that PROMPT is the whole
text already. --ids are run in place of the tokenizer's. --case takes text and ids from
a file, and needs no tokenizer.`

func (f *promptFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.system, "system", defaultSystem, "system prompt of the chat template")
	fl.StringVar(&f.ids, "ids", "", "the prompt's token ids, comma separated, in place of the tokenizer's")
	fl.StringVar(&f.caseFile, "case", "", "NAME.json of a dump folder, in place of PROMPT and --ids")
	fl.BoolVar(&f.templated, "templated", false, "PROMPT is the templated text already")
}

// check refuses flags that mean nothing together, and reads what needs no model.
func (f *promptFlags) check(cmd *cobra.Command, args []string) (err error) {
	f.systemGiven = cmd.Flags().Changed("system")
	idsGiven := cmd.Flags().Changed("ids")
	if len(args) > 0 {
		f.prompt = &args[0]
	}
	switch {
	case f.caseFile != "" && (len(args) > 0 || idsGiven || f.systemGiven || f.templated):
		return usageErrorf("--case brings text and ids of its own: got PROMPT, --ids, --system or --templated beside it")
	case f.caseFile != "":
		c, err := dumpfmt.ReadCaseFile(f.caseFile)
		if err != nil {
			return err
		}
		if got, bad := unsound(c.Text); bad {
			return fmt.Errorf("%s: text: got %s, want %s", dumpfmt.Printable(f.caseFile), got, soundText)
		}
		f.read = &c
		return nil
	case f.prompt == nil && idsGiven && f.needsText:
		return usageErrorf("--ids without PROMPT: the dump's fingerprint is that of the templated text")
	case f.prompt == nil && !idsGiven:
		return usageErrorf("no prompt: give PROMPT, --case, or where no text is needed --ids")
	case f.prompt != nil && *f.prompt == "":
		return usageErrorf("PROMPT: got an empty one, want what a user says")
	case f.templated && f.prompt == nil:
		return usageErrorf("--templated needs PROMPT")
	case f.systemGiven && f.prompt == nil:
		return usageErrorf("--system needs PROMPT")
	case f.templated && f.systemGiven:
		return usageErrorf("--templated: PROMPT is the whole text, got --system beside it")
	}
	for _, s := range []struct{ what, text string }{{"PROMPT", stringOr(f.prompt, "")}, {"--system", f.system}} {
		if got, bad := unsound(s.text); bad {
			return usageErrorf("%s: got %s, want %s", s.what, got, soundText)
		}
	}
	if idsGiven {
		f.tokenIDs, err = parseIDs(f.ids)
	}
	return err
}

func stringOr(s *string, none string) string {
	if s == nil {
		return none
	}
	return *s
}

func parseIDs(s string) ([]int, error) {
	var ids []int
	for i, field := range strings.Split(s, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(field), 10, 32)
		if err != nil || id < 0 {
			return nil, usageErrorf("--ids: element %d: got %q, want a token id", i, field)
		}
		ids = append(ids, int(id))
	}
	return ids, nil
}

// asked is one prompt to run.
type asked struct {
	engine.Case
	// hasText is false for ids alone.
	hasText bool
}

// ask makes text and ids of the flags with what the model's folder has for it.
// The ids are those of its vocabulary, and they and maxNew new ones fit its
// positions. Ids that the tokenizer wouldn't make of the text are run all the
// same; it is said on standard error.
func (f *promptFlags) ask(a *app, maxNew int) (asked, error) {
	m, err := a.text()
	if err != nil {
		return asked{}, err
	}
	q := asked{Case: engine.Case{Name: "PROMPT", TokenIDs: f.tokenIDs}, hasText: true}
	where := "--ids"
	switch {
	case f.read != nil:
		q.Case = engine.Case{Name: f.caseFile, Text: f.read.Text, TokenIDs: f.read.TokenIDs, Stop: f.read.Stop}
		where = dumpfmt.Printable(f.caseFile) + ": token_ids"
	case f.prompt == nil:
		q.hasText = false
	case f.templated:
		q.Text = *f.prompt
	default:
		q.Text, err = m.template(&f.system, *f.prompt)
		if err != nil && (f.needsText || f.tokenIDs == nil) {
			return asked{}, fmt.Errorf("PROMPT: %w%s", err, textHint)
		}
		if err != nil {
			a.warn("PROMPT: not compared with --ids: %v", err)
			q.hasText = false
		}
	}
	if q.TokenIDs == nil {
		where = "PROMPT"
		if q.TokenIDs, err = m.encode(q.Text); err != nil && m.err != nil {
			return asked{}, fmt.Errorf("PROMPT: %w%s", err, textHint)
		} else if err != nil {
			return asked{}, fmt.Errorf("PROMPT: %w", err)
		}
	} else if q.hasText {
		if d := m.differs(q.Text, q.TokenIDs); d != "" {
			a.warn("%s: %s", where, d)
		}
	}
	ckpt, err := a.checkpoint()
	if err != nil {
		return asked{}, err
	}
	if at, got, want := misfit(q.TokenIDs, ckpt.Arch(), maxNew); got != "" {
		if at >= 0 {
			where += fmt.Sprintf(": element %d", at)
		}
		return asked{}, fmt.Errorf("%s: got %s, want %s", where, got, want)
	}
	return q, nil
}

// textHint is the way out when the model's folder can't make text or ids.
const textHint = "; --templated takes PROMPT as the templated text, --ids its token ids, --case a file with both"

// misfit says why a model can't run ids and then up to maxNew new ones: the
// element at fault, -1 for all together, and what is wrong. got is empty when
// nothing is. maxNew is 0 where nothing is decoded.
func misfit(ids []int, arch engine.Arch, maxNew int) (at int, got, want string) {
	for i, id := range ids {
		if id >= arch.Vocab {
			got, want = outsideVocabulary(id, arch.Vocab)
			return i, got, want
		}
	}
	n := len(ids)
	if arch.MaxPositions > 0 && n > arch.MaxPositions-max(0, maxNew-1) {
		got := fmt.Sprintf("%d tokens", n)
		if maxNew > 0 {
			got += fmt.Sprintf(" with up to %d new ones", maxNew)
		}
		return -1, got, fmt.Sprintf("at most %d positions, the model's", arch.MaxPositions)
	}
	return -1, "", ""
}
