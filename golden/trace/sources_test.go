package trace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func sourcesFS() fstest.MapFS {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	return fstest.MapFS{
		"set/wikitext.jsonl":    file(`{"id": "w0", "text": "one"}` + "\n\n  \n" + `{"text": "two", "id": "w1"}`),
		"set/gsm8k.jsonl":       file(`{"id": "gsm8k/g0", "text": "three", "domain": "gsm8k"}` + "\n"),
		"set/alpha.jsonl":       file(`{"id": "a0", "text": "four"}`),
		"set/tnews_archive.bin": file("archive"),
		"set/notes.txt":         file("not a source"),
		"set/folder.jsonl/x":    file("not one either"),
		"all.jsonl":             file(`{"id": "x/1", "domain": "x", "text": "1"}` + "\r\n" + `{"id": "2", "domain": "y", "text": "2"}` + "\n" + `{"id": "3", "domain": "x", "text": "3"}`),
		"empty.jsonl":           file("\n \n"),
		"none/readme.txt":       file(""),
		"blank/d.jsonl":         file(""),
	}
}

func ids(s Selection) string {
	var all []string
	for _, x := range s.Sources {
		all = append(all, fmt.Sprintf("%s=%s@%s:%d", x.ID, x.Text, filepath.Base(x.File), x.Line))
	}
	return strings.Join(all, " ")
}

func TestReadSources(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       SourceOptions
		want    string
		domains []string
		per     int
	}{
		{"set", SourceOptions{}, "gsm8k/g0=three@gsm8k.jsonl:1 wikitext/w0=one@wikitext.jsonl:1 wikitext/w1=two@wikitext.jsonl:4 alpha/a0=four@alpha.jsonl:1",
			[]string{"gsm8k", "wikitext", "alpha"}, 2},
		{"set", SourceOptions{PerDomain: 1}, "gsm8k/g0=three@gsm8k.jsonl:1 wikitext/w0=one@wikitext.jsonl:1 alpha/a0=four@alpha.jsonl:1", []string{"gsm8k", "wikitext", "alpha"}, 1},
		{"set", SourceOptions{PerDomain: 9, Domains: []string{"alpha", "gsm8k"}}, "alpha/a0=four@alpha.jsonl:1 gsm8k/g0=three@gsm8k.jsonl:1", []string{"alpha", "gsm8k"}, 9},
		{"all.jsonl", SourceOptions{}, "x/1=1@all.jsonl:1 x/3=3@all.jsonl:3 y/2=2@all.jsonl:2", []string{"x", "y"}, 2},
		{"all.jsonl", SourceOptions{Domains: []string{"y"}}, "y/2=2@all.jsonl:2", []string{"y"}, 1},
	} {
		s, err := ReadSourcesFS(sourcesFS(), c.name, Standard(), c.o)
		require.NoError(t, err)
		require.Equal(t, c.want, ids(s))
		require.Equal(t, c.domains, s.Domains)
		require.Equal(t, c.per, s.PerDomain)
		require.Nil(t, s.ReferenceRouting)
		if c.name == "set" {
			require.Equal(t, hexSHA256([]byte("archive")), *s.TNewsArchive)
		}
	}
	s, err := ReadSourcesFS(sourcesFS(), "set", Standard(), SourceOptions{PerDomain: 1})
	require.NoError(t, err)
	c := NewSourceContract(s)
	require.Equal(t, 3, c.Sources)
	require.Equal(t, "null", c.Reference[0].Value.String())
	require.Equal(t, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed", s.Sources[1].ContentSHA256()) // sha256sum of "one"

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, sourcesFS()))
	s, err = ReadSources(filepath.Join(dir, "set")+"/", Standard(), SourceOptions{})
	require.NoError(t, err)
	require.Len(t, s.Sources, 4)
	_, err = ReadSources(filepath.Join(dir, "empty.jsonl"), Standard(), SourceOptions{})
	require.EqualError(t, err, "trace: sources "+filepath.Join(dir, "empty.jsonl")+": rows: got none, want at least one source")
	_, err = ReadSources(filepath.Join(dir, "nosuch"), Standard(), SourceOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadSourcesRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		o    SourceOptions
		want string
	}{
		{"set", SourceOptions{PerDomain: -1}, "trace: ReadSources: per domain: got -1, want 0 for all, or more"},
		{"set", SourceOptions{Domains: []string{"beta"}}, `trace: sources set: domain: got "beta", which isn't there, want gsm8k, wikitext, alpha`},
		{"set", SourceOptions{Domains: []string{"alpha", "alpha"}}, `trace: ReadSources: domains: got "alpha" twice, want each once`},
		{"none", SourceOptions{}, "trace: sources none: folder: got no DOMAIN.jsonl, want at least one"},
		{"empty.jsonl", SourceOptions{}, "trace: sources empty.jsonl: rows: got none, want at least one source"},
		{"blank", SourceOptions{}, "trace: sources blank/d.jsonl: rows: got none, want at least one source"},
	} {
		_, err := ReadSourcesFS(sourcesFS(), c.name, Standard(), c.o)
		require.EqualError(t, err, c.want)
	}
	good := `{"id": "1", "domain": "d", "text": "x"}`
	for name, c := range map[string]struct{ row, want string }{
		"cut short":     {`{"id": "2", "domain": "d", "te`, "JSON at byte 30 of the line: got the end, want the rest of the JSON value"},
		"no JSON":       {`hello`, "JSON at byte 0 of the line: got "},
		"a list":        {`[1]`, "row: got an array, want an object"},
		"a key twice":   {`{"id": "2", "id": "3", "domain": "d", "text": "x"}`, `got key "id" twice, want each key once`},
		"no text":       {`{"id": "2", "domain": "d"}`, `key "text": got nothing, want text`},
		"no domain":     {`{"id": "2", "text": "d"}`, `key "domain": got nothing, want text`},
		"unknown":       {`{"id": "2", "domain": "d", "text": "x", "variant": 1}`, `key "variant": got an unknown key, want id, text, domain and variants`},
		"blank":         {`{"id": "2", "domain": "d", "text": " \n"}`, `text: got " \n", want text that isn't blank, without a NUL`},
		"a NUL":         {`{"id": "2", "domain": "d", "text": "a\u0000"}`, `text that isn't blank, without a NUL`},
		"a number":      {`{"id": 2, "domain": "d", "text": "x"}`, "id: got 2, want text"},
		"UTF-8":         {"{\"id\": \"2\", \"domain\": \"d\", \"text\": \"\xff\"}", "JSON at byte "},
		"again":         {`{"id": "1", "domain": "d", "text": "y"}`, `id: got "d/1" again, after rows.jsonl:1, want each id once`},
		"again, named":  {`{"id": "d/1", "domain": "d", "text": "y"}`, "again, after rows.jsonl:1"},
		"no conditions": {`{"id": "2", "domain": "d", "text": "x", "variants": []}`, "variants: got an array, want an object"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"rows.jsonl": &fstest.MapFile{Data: []byte(good + "\n\n" + c.row + "\n")}}
			_, err := ReadSourcesFS(fsys, "rows.jsonl", Standard(), SourceOptions{})
			var bad *SourceError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, 3, bad.Line)
			require.ErrorContains(t, err, "trace: sources rows.jsonl:3: ")
			require.ErrorContains(t, err, c.want)
		})
	}
	fsys := fstest.MapFS{"set/d.jsonl": &fstest.MapFile{Data: []byte(`{"id": "1", "domain": "e", "text": "x"}`)}}
	_, err := ReadSourcesFS(fsys, "set", Standard(), SourceOptions{})
	require.EqualError(t, err, `trace: sources set/d.jsonl:1: domain: got "e", want "d", the file's`)
}

// tokenised is a row with the variants of a small source.
func tokenised(change func(c string, v map[string]string)) string {
	var b strings.Builder
	b.WriteString(`{"id": "1", "domain": "d", "text": "x", "variants": {`)
	list := func(ids []int) string { return strings.ReplaceAll(fmt.Sprint(ids), " ", ", ") }
	first := true
	for i, v := range smallSources[0].variants() {
		name := Standard().Conditions[i].Name
		m := map[string]string{
			"token_ids": list(v.TokenIDs), "content_positions": list(v.ContentPositions), "boundary_crossing_tokens": fmt.Sprint(v.BoundaryCrossing), "tokens": fmt.Sprint(len(v.TokenIDs)),
		}
		change(name, m)
		if len(m) == 0 {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		fmt.Fprintf(&b, "%q: {", name)
		sep := ""
		for _, k := range []string{"token_ids", "content_positions", "boundary_crossing_tokens", "tokens", "other"} {
			if m[k] != "" {
				fmt.Fprintf(&b, "%s%q: %s", sep, k, m[k])
				sep = ", "
			}
		}
		b.WriteString("}")
	}
	b.WriteString("}}")
	return b.String()
}

func TestReadTokenisedSources(t *testing.T) {
	read := func(row string) (Selection, error) {
		return ReadSourcesFS(fstest.MapFS{"t.jsonl": &fstest.MapFile{Data: []byte(row)}}, "t.jsonl", Standard(), SourceOptions{})
	}
	s, err := read(tokenised(func(string, map[string]string) {}))
	require.NoError(t, err)
	require.Equal(t, smallSources[0].variants(), s.Sources[0].Variants)
	s, err = read(tokenised(func(_ string, m map[string]string) { delete(m, "tokens") }))
	require.NoError(t, err)
	require.Equal(t, smallSources[0].variants(), s.Sources[0].Variants)

	for name, c := range map[string]struct {
		change func(c string, m map[string]string)
		want   string
	}{
		"a condition gone": {func(c string, m map[string]string) {
			if c == "s1_x" {
				clear(m)
			}
		}, "variants.s1_x: got no object, want one"},
		"a wrong count": {func(c string, m map[string]string) {
			if c == "s1_x" {
				m["tokens"] = "7"
			}
		}, "variants.s1_x.tokens: got 7, want 12, the length of token_ids"},
		"a key gone": {func(c string, m map[string]string) {
			if c == "s1_x" {
				delete(m, "content_positions")
			}
		}, "variants.s1_x: got not all keys, want token_ids, content_positions and boundary_crossing_tokens"},
		"another key": {func(c string, m map[string]string) { m["other"] = "1" }, "variants.s0_eos.other: got 1, want "},
		"no list":     {func(c string, m map[string]string) { m["token_ids"] = `"1"` }, `variants.s0_eos.token_ids: got `},
		"a float":     {func(c string, m map[string]string) { m["token_ids"] = `[1.0]` }, `variants.s0_eos.token_ids: got [1.0]`},
		"a negative":  {func(c string, m map[string]string) { m["boundary_crossing_tokens"] = "-1" }, `variants.s0_eos.boundary_crossing_tokens: got -1`},
		"one id changed": {func(c string, m map[string]string) {
			if c == "s1_eos" {
				m["token_ids"] = strings.Replace(m["token_ids"], "12", "19", 1)
			}
		}, "variants: s1_eos: content token 1: got 19, want 12, as in s0_eos"},
		"no content": {func(c string, m map[string]string) { m["content_positions"] = "[]" }, "variants: s0_eos: content tokens: got 0, want at least one"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(tokenised(c.change))
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err = read(`{"id": "1", "domain": "d", "text": "x", "variants": {"s0_eos": {}, "s2_eos": {}}}`)
	require.ErrorContains(t, err, `variants: got condition "s2_eos", want s0_eos, s0_bos`)
}

func FuzzReadSources(f *testing.F) {
	f.Add([]byte(tokenised(func(string, map[string]string) {})))
	f.Add([]byte(`{"id": "1", "domain": "d", "text": "x"}` + "\n" + `{"id": "2", "domain": "d", "text": "y"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadSourcesFS(fstest.MapFS{"t.jsonl": &fstest.MapFile{Data: data}}, "t.jsonl", Standard(), SourceOptions{})
		if err != nil {
			return
		}
		for _, x := range s.Sources {
			if x.Variants != nil {
				if problems, n := Standard().CheckContent(x.ID, x.Variants, nil); len(problems) > 0 || n == 0 {
					t.Fatalf("%v", problems)
				}
			}
		}
	})
}

// words is a tokenizer that makes a token of each rune run up to a space or a line
// break, which is one with what follows.
func words(text string) (ids []int, spans [][2]int, err error) {
	if strings.Contains(text, "refuse") {
		return nil, nil, errors.New("refused")
	}
	for i := 0; i < len(text); {
		n := 1
		for i+n < len(text) && text[i+n] != ' ' && text[i+n] != '\n' {
			n++
		}
		ids, spans = append(ids, 1000+len(text[i:i+n])), append(spans, [2]int{i, i + n})
		i += n
	}
	return ids, spans, nil
}

// TestTokenise: the first word has the space before it, so it crosses the boundary;
// the line breaks behind the text don't.
func TestTokenise(t *testing.T) {
	p := Standard()
	v, err := p.Tokenise(words, smallBoundary, "abc de fghi")
	require.NoError(t, err)
	require.Len(t, v, 8)
	require.Equal(t, Variant{[]int{91, 1005, 1004, 1003, 1005, 1001, 1011}, []int{3, 4}, 1}, v[0])
	require.Equal(t, Variant{[]int{8, 1003, 1004, 1002, 1008, 1011, 1001, 1006, 1004, 1003, 1005, 1001, 1011}, []int{9, 10}, 1}, v[7])
	problems, _ := p.CheckContent("x", v, smallBoundary)
	require.Empty(t, problems)

	// A single word has no interior token.
	v, err = p.Tokenise(words, smallBoundary, "abc")
	require.NoError(t, err)
	require.Equal(t, Variant{[]int{91, 1005, 1004, 1001, 1011}, nil, 1}, v[0])
	err = newSmall(t).Start(Source{ID: "d/1"}, v, smallBoundary)
	require.EqualError(t, err, "trace: d/1: s0_eos: content tokens: got 0, want at least one that lies within the source's text")

	// Tokens of no bytes: at an edge they overlap nothing, inside they do.
	empty := func(at int) Encode {
		return func(text string) ([]int, [][2]int, error) {
			start := strings.Index(text, "abc")
			return []int{5, 6}, [][2]int{{start + at, start + at}, {start + 1, start + 3}}, nil
		}
	}
	for at, crossing := range map[int]int{0: 0, 1: 1, 3: 0} {
		v, err = p.Tokenise(empty(at), smallBoundary, "abc")
		require.NoError(t, err)
		require.Equal(t, Variant{[]int{91, 5, 6}, []int{2}, crossing}, v[0], at)
	}
	_, err = p.Tokenise(words, smallBoundary, "refuse")
	require.EqualError(t, err, "trace: s0_eos: refused")
	_, err = p.Tokenise(words, map[string]int{"eos": 1}, "a")
	require.EqualError(t, err, "trace: Tokenise: boundary: got no id for bos, want one for each of the plan's")
	_, err = p.Tokenise(func(string) ([]int, [][2]int, error) { return []int{1}, nil, nil }, smallBoundary, "a")
	require.EqualError(t, err, "trace: Tokenise: spans: got 0, want one per token, 1")
}

func TestPadLeft(t *testing.T) {
	b := PadLeft([]Variant{{TokenIDs: []int{1, 2}}, {TokenIDs: []int{3, 4, 5, 6}}}, 9)
	require.Equal(t, Batch{IDs: [][]int{{9, 9, 1, 2}, {3, 4, 5, 6}}, Padding: []int{2, 0}, Tokens: 4}, b)
}
