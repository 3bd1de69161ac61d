package reference

import "encoding/json"

// preTokenizer is how text is split into words before the merges, and whether a
// word that is a token is taken whole.
type preTokenizer struct {
	// patterns are applied one after the other to the parts that those before it
	// leave: matches are words, and what is between them.
	patterns     []string
	ignoreMerges bool
}

// The patterns that llama.cpp has for the names of tokenizer.ggml.pre. They are
// those of the models' own tokenizer.json but for what no published text shows:
// contractions are spelled out, not matched in any case, which would take a long s
// for an s; and which characters are digits is for one Unicode version to say.
const (
	gpt2Pattern  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`
	contractions = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`
	wordsTail    = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	llama3Pattern = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + wordsTail
	qwen2Pattern  = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + wordsTail
)

// preTokenizers are the known values of tokenizer.ggml.pre; names that llama.cpp
// treats alike stand together.
var preTokenizers = func() map[string]preTokenizer {
	table := map[string]preTokenizer{}
	for _, group := range []struct {
		pre   preTokenizer
		names []string
	}{
		{preTokenizer{patterns: []string{gpt2Pattern}}, []string{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion"}},
		{preTokenizer{patterns: []string{`\p{N}`, gpt2Pattern}}, []string{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}},
		{preTokenizer{patterns: []string{llama3Pattern}, ignoreMerges: true}, []string{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"}},
		{preTokenizer{patterns: []string{llama3Pattern}}, []string{"smaug-bpe", "dbrx", "chatglm-bpe", "glm4"}},
		{preTokenizer{patterns: []string{qwen2Pattern}}, []string{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"}},
		// Files from before the key, and what llama.cpp makes of them.
		{preTokenizer{patterns: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, `\p{N}+`, `[0-9][0-9][0-9]`}}, []string{"default"}},
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
	for _, pattern := range p.patterns {
		steps = append(steps, object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false})
	}
	steps = append(steps, object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false})
	data, err := json.Marshal(object{"type": "Sequence", "pretokenizers": steps})
	if err != nil {
		panic(err) // strings and bools
	}
	return data
}
