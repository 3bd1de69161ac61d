package dumpfmt

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCaseFileRead(t *testing.T) {
	c, err := parseCaseFile(testFile, []byte("\n {\"text\": \"<|im_start|>\\u00e9\\ud83d\\ude00\\n\", \"token_ids\": [0, 2147483647],\n"+
		`"prompt": "", "system": null, "output_ids": [], "free": {"b": [1.50, "x"]}, "Text": "another key", "stop":[3],"decoded":"\/"}`+"\n"))
	require.NoError(t, err)
	empty, slash := "", "/"
	require.Equal(t, CaseFile{
		Text: "<|im_start|>é😀\n", TokenIDs: []int{0, 2147483647}, Prompt: &empty,
		OutputIDs: []int{}, Stop: []int{3}, Decoded: &slash,
		Extra: map[string]json.RawMessage{"free": json.RawMessage(`{"b": [1.50, "x"]}`), "Text": json.RawMessage(`"another key"`)},
	}, c)
}

func TestCaseFileRefused(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"nothing", ``, "the case at byte 0x0: got the end, want '{'"},
		{"a list", `[]`, "the case at byte 0x0: got '[', want '{'"},
		{"a byte order mark", "\ufeff{}", "the case at byte 0x0"},
		{"another value behind it", `{"text":"a","token_ids":[1]} {}`, "after the JSON value at byte 0x1D"},
		{"text twice", `{"text":"a","text":"b","token_ids":[1]}`, `key "text" twice`},
		{"a free key twice, deep down", `{"text":"a","token_ids":[1],"f":[{"k":1,"k":1}]}`, `key "k" twice`},
		{"text that is null", `{"text":null,"token_ids":[1]}`, `text at byte 0x8: got 'n', want '"'`},
		{"no ids", `{"text":"a","token_ids":[]}`, "token_ids at byte 0x18: got none, want at least 1"},
		{"a negative id", `{"text":"a","token_ids":[5,-1]}`, "token_ids[1] at byte 0x1B: got -1, want an integer in [0, 2147483647]"},
		{"an id above int32", `{"text":"a","token_ids":[2147483648]}`, "token_ids[0] at byte 0x19: got 2147483648"},
		{"an id with a point", `{"text":"a","token_ids":[1.0]}`, "got 1.0"},
		{"an id with an exponent", `{"text":"a","token_ids":[1e3]}`, "got 1e3"},
		{"an id of many digits", `{"text":"a","token_ids":[` + strings.Repeat("9", 99) + `]}`, "got 9999999999999999999999999999999999999999, want"},
		{"an id with a leading zero", `{"text":"a","token_ids":[01]}`, "element of token_ids at byte 0x1A: got '1', want ','"},
		{"an id in quotes", `{"text":"a","token_ids":["1"]}`, "token_ids[0] at byte 0x19: got '\"'"},
		{"ids that are null", `{"text":"a","token_ids":null}`, "token_ids at byte"},
		{"a negative output id", `{"text":"a","token_ids":[1],"output_ids":[-1]}`, "output_ids[0] at byte 0x2A: got -1"},
		{"a prompt that is a number", `{"text":"a","token_ids":[1],"prompt":1}`, "prompt at byte"},
		{"an unpaired surrogate", `{"text":"\ud83d","token_ids":[1]}`, "text at byte 0x9: got an unpaired surrogate"},
		{"a low surrogate first", `{"text":"\ude00\ud83d","token_ids":[1]}`, "an unpaired surrogate"},
		{"bad UTF-8", "{\"text\":\"\xe9\",\"token_ids\":[1]}", "text at byte 0x9: got byte 0xE9, want UTF-8"},
		{"a surrogate as UTF-8", "{\"text\":\"\xed\xa0\x80\",\"token_ids\":[1]}", "got byte 0xED, want UTF-8"},
		{"a raw line feed", "{\"text\":\"a\nb\",\"token_ids\":[1]}", "control character 0x0A"},
		{"an unknown escape", `{"text":"\x41","token_ids":[1]}`, "text at byte 0x9: got escape 'x'"},
		{"NaN", `{"text":"a","token_ids":[1],"f":NaN}`, "f at byte 0x20: got 'N', want a number"},
		{"a trailing comma", `{"text":"a","token_ids":[1,]}`, "token_ids[1] at byte"},
		{"deep nesting", `{"f":` + strings.Repeat(`[`, 200), "want at most 100 levels"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseCaseFile(testFile, []byte(tt.data))
			if e := brokenAt(t, err, len(tt.data)); !strings.Contains(e.Error(), tt.want) {
				t.Errorf("got %v, want %q", e, tt.want)
			}
		})
	}
}

func TestMissingKeysAreNamed(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{`{"token_ids":[1]}`, `dumpfmt: case file x.bin: key "text": got nothing, want the templated prompt`},
		{`{"text":"a"}`, `dumpfmt: case file x.bin: key "token_ids": got nothing, want the prompt's ids`},
		{`{"Text":"a","token_ids":[1]}`, `key "text"`},
	} {
		_, err := parseCaseFile(testFile, []byte(tt.data))
		var e *FormatError
		if !errors.As(err, &e) || e.Offset != NoOffset || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.data, err, tt.want)
		}
	}
}

func TestEngineFileRead(t *testing.T) {
	e, err := parseEngineFile(testFile, []byte(`{"name":"llama.cpp","version":5,"layers":"int8-scaled","logits":null,
		"weights":"Q4_1","kv_cache":{"k":"q8_0"},"probes":["embed"],"model":null,"dtype":"float32","threads":2}`))
	require.NoError(t, err)
	require.Equal(t, EngineFile{
		Name: "llama.cpp", Version: "5", Layers: LayersInt8Scaled, Weights: "Q4_1", DType: "float32",
		KVCache: `{"k":"q8_0"}`, Probes: `["embed"]`,
		Extra: map[string]json.RawMessage{"version": json.RawMessage("5"), "kv_cache": json.RawMessage(`{"k":"q8_0"}`),
			"probes": json.RawMessage(`["embed"]`), "threads": json.RawMessage("2")},
	}, e)
}

func TestEngineFileRefused(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"a list", `[]`, "the description at byte 0x0"},
		{"an empty name", `{"name":" "}`, `name at byte 0x8: got " ", want a name`},
		{"a name that is no text", `{"name":1}`, "name at byte 0x8"},
		{"unknown layers", `{"name":"e","layers":"bf16"}`, `layers at byte 0x15: got "bf16", want "f32" or "int8-scaled"`},
		{"layers in capitals", `{"name":"e","layers":"F32"}`, `got "F32"`},
		{"unknown logits", `{"name":"e","logits":"int8-scaled"}`, `logits at byte 0x15: got "int8-scaled", want "f32" or "i32"`},
		{"layers that are no text", `{"name":"e","layers":["f32"]}`, "layers at byte"},
		{"layers twice", `{"name":"e","layers":"f32","layers":"int8-scaled"}`, `key "layers" twice`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseEngineFile(testFile, []byte(tt.data))
			if e := brokenAt(t, err, len(tt.data)); !strings.Contains(e.Error(), tt.want) {
				t.Errorf("got %v, want %q", e, tt.want)
			}
		})
	}
	_, err := parseEngineFile(testFile, []byte(`{"layers":"f32"}`))
	require.EqualError(t, err, `dumpfmt: engine file x.bin: key "name": got nothing, want a name`)
}
