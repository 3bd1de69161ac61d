// Tinyllm runs the engine for Plumbline: on one prompt (plumbline gate --exec), or
// on one after the other with --serve (--protocol).
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/tinyllm/tinyllm"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	model := flag.String("model", "", "folder of the checkpoint")
	serve := flag.Bool("serve", false, "speak JSON lines on standard input and output")
	ids := flag.String("ids", "", "the prompt's token ids, comma-separated")
	textFile := flag.String("text-file", "", "file with the templated prompt")
	steps := flag.Int("steps", 8, "tokens to decode")
	out := flag.String("out", "", "folder to write the dumps into, as case.*")
	flag.Parse()
	m, err := tinyllm.Load(*model)
	if err != nil {
		return err
	}
	if m.Fault, err = tinyllm.FaultFromEnv(); err != nil {
		return err
	}
	if *serve {
		return protocol(m)
	}
	var prompt []int
	for _, word := range strings.Split(*ids, ",") {
		id, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("--ids: %w", err)
		}
		prompt = append(prompt, id)
	}
	text, err := os.ReadFile(*textFile)
	if err != nil {
		return err
	}
	return answer(m, request{Case: "case", TokenIDs: prompt, Text: string(text), DecodeSteps: *steps,
		Out: place{Dir: *out, Layers: filepath.Join(*out, "case.layers.bin"), Logits: filepath.Join(*out, "case.logits.bin")}})
}

// fake answers the two prompts by which Plumbline tests the way to it (plumbline
// selftest --help); ok is false for any other.
func fake(ids []int) (out *tinyllm.Output, ok bool) {
	plus := float32(0)
	switch {
	case slices.Equal(ids, []int{1, 2, 3, 4, 5}):
	case slices.Equal(ids, []int{5, 4, 3, 2, 1}):
		plus = 1 // all wrong, which has to be seen
	default:
		return nil, false
	}
	rows := make([][]float32, 2)
	for _, id := range ids {
		rows[0] = append(rows[0], float32(id)+plus)
		rows[1] = append(rows[1], -float32(id)+plus)
	}
	return &tinyllm.Output{Rows: rows, Logits: rows[:1]}, true
}
