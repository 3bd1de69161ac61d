package reference

import (
	"encoding/json"
	"slices"
)

// preTokenizer is how text is split into words before the merges, and whether a
// word that is a token is taken whole.
type preTokenizer struct {
	// splits are steps in their Hugging Face form, in front of the byte-level
	// alphabet.
	splits []split
	// gpt2 splits by GPT-2's pattern at last.
	gpt2         bool
	ignoreMerges bool
}

// split sets the matches of a pattern apart, or single digits where it is empty.
type split struct{ pattern string }

// The patterns that llama.cpp has for the names of tokenizer.ggml.pre, in the
// form of the models' own tokenizer.json. Contractions are spelled out, not
// matched in any case, which would take a long s for an s.
const (
	contractions = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`
	wordsTail    = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	patternLlama3 = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + wordsTail
	patternQwen2  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + wordsTail
)

// preTokenizers are the known values of tokenizer.ggml.pre; names that llama.cpp
// treats alike stand together.
var preTokenizers = func() map[string]preTokenizer {
	table := map[string]preTokenizer{}
	for _, group := range []struct {
		pre   preTokenizer
		names []string
	}{
		{preTokenizer{gpt2: true}, []string{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion"}},
		{preTokenizer{splits: []split{{}}, gpt2: true}, []string{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}},
		{preTokenizer{splits: []split{{patternLlama3}}, ignoreMerges: true}, []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"}},
		{preTokenizer{splits: []split{{patternLlama3}}}, []string{"smaug-bpe", "dbrx", "chatglm-bpe", "glm4"}},
		{preTokenizer{splits: []split{{patternQwen2}}}, []string{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"}},
		// Files from before the key, and what llama.cpp makes of them.
		{preTokenizer{splits: []split{
			{`[\p{P}\$\+<=>\^~\|]+`},
			{`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`},
			{`\p{N}+`}, {`[0-9][0-9][0-9]`}}}, []string{"default"}},
	} {
		for _, name := range group.names {
			table[name] = group.pre
		}
	}
	return table
}()

// json is the pre_tokenizer of a tokenizer.json.
func (p preTokenizer) json() []byte {
	type object map[string]any
	var steps []object
	for _, s := range p.splits {
		if s.pattern == "" {
			steps = append(steps, object{"type": "Digits", "individual_digits": true})
			continue
		}
		steps = append(steps, object{"type": "Split", "pattern": object{"Regex": s.pattern}, "behavior": "Isolated", "invert": false})
	}
	steps = append(slices.Clip(steps), object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": p.gpt2})
	data, err := json.Marshal(object{"type": "Sequence", "pretokenizers": steps})
	if err != nil {
		panic(err) // strings and bools
	}
	return data
}
