package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// TestReadRefuses: what is wrong, and where.
func TestReadRefuses(t *testing.T) {
	const stage = "sources[0].hidden_stages.layer_00"
	for name, c := range map[string]struct{ old, replacement, want string }{
		"no version":          {`"schema_version": 1,`, ``, "schema_version: got nothing, want a value"},
		"version text":        {`"schema_version": 1`, `"schema_version": "1"`, `schema_version: got "1", want 1`},
		"no model":            {`"repo": "nobody/small",`, ``, "model.repo: got nothing, want a value"},
		"a number for a text": {`"repo": "nobody/small"`, `"repo": 3`, "model.repo: got 3, want a string"},
		"an unknown key":      {`"repo"`, `"reop": 1, "repo"`, "model.reop: got an unknown key"},
		"a key twice":         {`"revision": "none"`, `"repo": "x", "revision": "none"`, `/model/repo: got key "repo" twice, want each key once`},
		"a short hash":        {`"bytes": 2,`, `"bytes": 2, "sha256": "ab" }, "x": { "bytes": 2,`, "model.files.config.json.sha256: got \"ab\", want 64 hexadecimal digits in lower case"},
		"a negative count":    {`"vocab_size": 90`, `"vocab_size": -90`, "tokenizer_contract.vocab_size: got -90, want an integer of 0 or more"},
		"a float count":       {`"vocab_size": 90`, `"vocab_size": 90.0`, "tokenizer_contract.vocab_size: got 90.0, want an integer of 0 or more"},
		"a text for a pad":    {`"pad_token_id": 91`, `"pad_token_id": "91"`, "tokenizer_contract.pad_token_id: got \"91\", want an integer of 0 or more, or null"},
		"a boolean":           {`"system": false`, `"system": 0`, "tokenizer_contract.conditions.s0_eos.system: got 0, want true or false"},
		"an id":               {`"all_special_ids": [`, `"all_special_ids": ["a",`, "tokenizer_contract.all_special_ids: got "},
		"a scope":             {`"target_content",`, `"content",`, "trace_contract.scopes: got [content full_input], want [target_content full_input]"},
		"a pair of three":     {`"system_eos": [`, `"system_eos": [ "s0_x",`, "trace_contract.edge_pairs.system_eos: got 3 conditions, want two"},
		"an unknown pair":     {`"s0_eos",` + "\n        \"s1_eos\"", `"s0_eos", "s7_eos"`, "trace_contract.conditions and edge_pairs: got "},
		"more layers":         {`"decoder_layers": 3`, `"decoder_layers": 4`, "sources[0].hidden_stages.layer_03: got nothing, want a value"},
		"a gate too much":     {`"layer": 2,`, `"layer": 1,`, "sources[0].router_layers.layer_02.layer: got 1, want 2"},
		"no experts":          {`"experts": 6`, `"experts": 0`, "trace_contract: got trace: shape: experts: got 0, want at least 2, want a shape"},
		"more experts":        {`"experts": 6`, `"experts": 7`, "sources[0].router_layers.layer_01.conditions[0].loads: got 6 elements, want 7"},
		"a stage":             {`"layer_00": {`, `"layer_07": {`, stage + ": got nothing, want a value"},
		"a condition":         {"\"conditions\": {\n            \"s0_eos\"", `"conditions": { "s0_eso"`, "sources[0].hidden_stages.embedding.conditions.s0_eos: got nothing, want a value"},
		"a shape":             {`"shape": [` + "\n                  4,", `"shape": [`, "sources[0].hidden_stages.embedding.conditions[0].shape: got 1 elements, want 2"},
		"a figure":            {`"mean_cosine_similarity": `, `"mean_cosine_similarity": null, "x": `, "target_comparisons.system_eos.mean_cosine_similarity: got null, want a number"},
		"NaN":                 {`"load_cv": `, `"load_cv": NaN, "x": `, "byte 0x"},
		"a list for sources":  {`"sources": [`, `"sources": {}, "x": [`, "sources: got an object, want a list of objects"},
		"no sentence":         {`"Nothing was run."`, `4`, "claim_boundary: got [4], want a list of strings"},
		"nothing optional":    {`"gpu": null`, `"gpu": 1`, "execution.gpu: got 1, want a string or null"},
		"a summary":           {`"target_route_decisions"`, `"target_decisions"`, "summary.target_route_decisions: got nothing, want a value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("d.json", edited(t, c.old, c.replacement))
			var bad *FormatError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "trace: document d.json: "), err)
		})
	}
}

func TestReadRefusesAnotherSchema(t *testing.T) {
	_, err := Parse("d.json", edited(t, `"schema_version": 1`, `"schema_version": 2`))
	var other *UnsupportedError
	require.ErrorAs(t, err, &other)
	require.EqualError(t, err, "trace: document d.json: schema_version: 2 is not supported, only 1")
}

// TestReadRefusesWhatIsCutShort: at any byte.
func TestReadRefusesWhatIsCutShort(t *testing.T) {
	_, data := small(t)
	for n := 0; n < len(data)-2; n += 997 {
		_, err := Parse("d.json", data[:n])
		var bad *FormatError
		require.ErrorAs(t, err, &bad, "%d bytes", n)
	}
	_, err := Parse("d.json", data[:100_000])
	require.ErrorContains(t, err, "trace: document d.json: byte 0x186A0, /sources/1/hidden_stages/embedding/")
	require.ErrorContains(t, err, ": got the end, want the rest of the JSON value")
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(filepath.Join(dir, "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(dir, "list.json")
	require.NoError(t, os.WriteFile(path, []byte("[1]"), 0o600))
	_, err = Read(path)
	require.EqualError(t, err, "trace: document "+path+": the document: got an array, want an object")
	_, err = Parse("two", append(edited(t, `"none"`, `"none"`), '{'))
	require.ErrorContains(t, err, "got more after the JSON value, want the end")
}

// TestEncodeRefusesOtherLengths: a document changed in memory isn't written as if
// nothing had happened.
func TestEncodeRefusesOtherLengths(t *testing.T) {
	for name, change := range map[string]func(*Document){
		"sources[0].router_layers":              func(d *Document) { d.Traced[0].Gates = d.Traced[0].Gates[:1] },
		"sources[1].hidden_stages":              func(d *Document) { d.Traced[1].Stages = nil },
		"summary.routes":                        func(d *Document) { d.Summary.Routes = nil },
		"summary.hidden[2]":                     func(d *Document) { d.Summary.Hidden[2] = nil },
		"sources[0].prompt_tokens_by_condition": func(d *Document) { d.Traced[0].PromptTokens = nil },
	} {
		d, _ := small(t)
		change(d)
		var bad *FormatError
		require.ErrorAs(t, d.Encode(&strings.Builder{}), &bad, name)
		require.Equal(t, name, bad.Path)
	}
}

func TestCompareDocuments(t *testing.T) {
	a, _ := small(t)
	b, _ := small(t)
	same := Compare(a, b)
	require.Zero(t, same.Different)
	require.Empty(t, same.Differences)
	require.Empty(t, same.Run)

	b.CapturedAt = "later"
	b.Execution.LoadSeconds = 7
	b.Traced[0].ForwardSeconds = 7
	b.Model.Revision = "other"
	b.Traced[1].Stages[2].Edges[0].MeanRelativeL2 *= 1.5
	b.Traced[1].Stages[3].Edges[0].MeanRelativeL2 *= 1.25
	b.Traced[1].Gates[0].Conditions[0][0].Loads[2] += 3
	b.Traced[1].Gates[0].Conditions[0][0].OrderedSHA256 = strings.Repeat("0", 64)
	c := Compare(a, b)
	require.Equal(t, same.Compared, c.Compared)
	require.Equal(t, 5, c.Different)
	require.Len(t, c.Differences, 5)
	var run, fields []string
	for _, d := range c.Run {
		run = append(run, d.Path)
	}
	require.Equal(t, []string{"captured_at", "execution.load_seconds", "sources[plain/one].forward_seconds"}, run)
	for _, f := range c.Fields {
		if f.Different > 0 {
			fields = append(fields, f.Field)
		}
		switch f.Field {
		case "sources[*].hidden_stages.*.target_comparisons.*.mean_relative_l2":
			require.Equal(t, 2*5*10, f.Compared)
			require.Equal(t, 2, f.Different)
			require.InEpsilon(t, .5, f.MaxRel, 1e-9)
			require.Equal(t, "sources[plain/two].hidden_stages.layer_01.target_comparisons.system_eos.mean_relative_l2", f.At)
		case "sources[*].router_layers.*.conditions.*.target_content.loads":
			require.Equal(t, 3., f.MaxAbs)
		}
	}
	require.Equal(t, []string{
		"model.revision", "sources[*].hidden_stages.*.target_comparisons.*.mean_relative_l2",
		"sources[*].router_layers.*.conditions.*.target_content.loads", "sources[*].router_layers.*.conditions.*.target_content.ordered_route_sha256",
	}, fields)

	// Other sources, another order, other stages.
	b, _ = small(t)
	b.Traced[0], b.Traced[1] = b.Traced[1], b.Traced[0]
	c = Compare(a, b)
	require.Equal(t, 1, c.Different)
	require.Equal(t, "sources, order", c.Differences[0].Path)
	b.Traced = b.Traced[:1]
	c = Compare(a, b)
	require.Equal(t, "sources[plain/one]", c.Differences[0].Path)
	require.Equal(t, "nothing", c.Differences[0].B)
	b, _ = small(t)
	b.Trace.Layers = 2
	for i := range b.Traced {
		b.Traced[i].Stages = append(b.Traced[i].Stages[:3:3], b.Traced[i].Stages[4])
	}
	b.Summary.Hidden = append(b.Summary.Hidden[:3:3], b.Summary.Hidden[4])
	c = Compare(a, b)
	require.Equal(t, 4, c.Different) // the count, the stage in two sources and in the summary
}

// TestCompareListsAFewOfEach: the counts go on.
func TestCompareListsAFewOfEach(t *testing.T) {
	a, _ := small(t)
	b, _ := small(t)
	for i := range b.Traced {
		for _, st := range b.Traced[i].Stages {
			for e := range st.Edges {
				st.Edges[e].MaxAbsDelta++
			}
		}
	}
	c := Compare(a, b)
	require.Equal(t, 2*5*10, c.Different)
	require.Len(t, c.Differences, perField)
}

// least is a document with one of everything.
func least(t testing.TB) []byte {
	p := Plan{Conditions: []Condition{{"a", false, "eos"}, {"b", true, "eos"}}, Edges: []Edge{{"ab", "a", "b"}}}
	s := Shape{Layers: 1, Gates: []int{0}, Hidden: 1, Experts: 2, TopK: 1}
	a, err := NewAccumulator(p, s, Float32)
	require.NoError(t, err)
	v := Variant{TokenIDs: []int{0, 1}, ContentPositions: []int{1}}
	require.NoError(t, a.Start(Source{ID: "d/1", Domain: "d", Text: "x"}, []Variant{v, v}, nil))
	for c := range 2 {
		for stage := range 3 {
			require.NoError(t, a.Hidden(stage, c, [][]float32{{1}, {2}}))
		}
		require.NoError(t, a.Routes(0, c, Routes{[][]int{{0}, {1}}, [][]float32{{.5}, {1}}, Float32}))
	}
	st, err := a.Finish(0, nil)
	require.NoError(t, err)
	z := NewSummariser(p, s)
	z.Add(st)
	d := Document{Head: smallHead(), Traced: []SourceTrace{*st}}
	d.Trace, d.Tokenizer.Conditions = NewContract(p, s, Float32), p.Conditions
	d.Summary, err = z.Summary()
	require.NoError(t, err)
	data, err := d.value().Append(nil, canonical.InsertionOrder)
	require.NoError(t, err)
	return data
}

func FuzzParse(f *testing.F) {
	f.Add(least(f))
	f.Add([]byte(`{"schema_version":1}`))
	f.Add([]byte(`{"schema_version":1,"captured_at":"","model":{},"sources":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		var b strings.Builder
		if err := d.Encode(&b); err != nil {
			t.Fatalf("what was read isn't written: %v", err)
		}
		again, err := Parse("again", []byte(b.String()))
		if err != nil {
			t.Fatalf("what was written isn't read: %v", err)
		}
		if c := Compare(d, again); c.Different+len(c.Run) > 0 {
			t.Fatalf("differs: %v", c.Differences)
		}
		CheckShape(d, d.Plan(), d.Shape())
		CheckStatistics(d, ScriptRounding)
	})
}
