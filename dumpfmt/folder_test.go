package dumpfmt

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files of a sound folder; the fingerprint in the dumps is that of "foobar".
const (
	caseJSON  = `{"text":"foobar","token_ids":[4,5],"output_ids":[6,7],"note":"kept"}`
	floatSide = `{"name":"e","layers":"f32","logits":"f32"}`
	int8Side  = `{"name":"e","layers":"int8-scaled","logits":"i32"}`
)

// makeFolder writes files, a name ending in a slash being a folder.
func makeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.Mkdir(path, 0o777))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(files[name]), 0o666))
	}
	return dir
}

func hexString(t *testing.T, s string) string { return string(unhex(t, s)) }

func TestFolderRead(t *testing.T) {
	dir := makeFolder(t, map[string]string{
		"engine.json": floatSide, "b.json": caseJSON, "b.layers.bin": hexString(t, floatLayersHex),
		"b.logits.bin": hexString(t, floatLogitsHex), "a-c.json": `{"text":"foobar","token_ids":[4,5],"output_ids":[],"note":1}`, "a-c.logits.bin": hexString(t, emptyLogitsHex),
		"a.json": caseJSON, "a.logits.bin": hexString(t, floatLogitsHex),
		"b.stdout.txt": "", ".b.json.tmp-1": "", "notes.md": "", "sub/": "",
	})
	f, err := OpenFolder(dir)
	require.NoError(t, err)
	require.Equal(t, "e", f.Engine().Name)
	var names []string
	for _, c := range f.Cases() {
		names = append(names, c.Name)
		require.NoError(t, c.Check())
		require.Equal(t, []int{4, 5}, c.File.TokenIDs)
		require.Contains(t, c.File.Extra, "note")
	}
	require.Equal(t, []string{"a", "a-c", "b"}, names)

	b, err := f.Case("b")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "b.layers.bin"), b.LayersPath)
	d, err := b.OpenFloatLayers()
	require.NoError(t, err)
	require.Equal(t, uint64(foobarFingerprint), d.Header().Fingerprint)
	require.NoError(t, d.Close())
	_, err = b.OpenInt8Layers()
	wantUsage(t, err)
	_, err = b.OpenInt32Logits()
	wantUsage(t, err)
	_, err = b.OpenProbes()
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = f.Case("c")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestFolderErrors(t *testing.T) {
	var broken *FormatError
	var none *NoCasesError

	_, err := OpenFolder(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.False(t, errors.As(err, &broken), "a folder that isn't there is no broken one")

	_, err = OpenFolder(makeFolder(t, map[string]string{"a.json": caseJSON}))
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "engine.json: got no such file")

	dir := makeFolder(t, map[string]string{"engine.json": floatSide, "readme.txt": ""})
	_, err = OpenFolder(dir)
	require.ErrorAs(t, err, &none)
	require.Equal(t, dir, none.Folder)

	for _, engine := range []string{`{`, `{"name":""}`, `{"name":"e","layers":"f16"}`, ``} {
		dir := makeFolder(t, map[string]string{"engine.json": engine, "a.json": caseJSON})
		_, err = OpenFolder(dir)
		require.ErrorAs(t, err, &broken)
		require.Equal(t, filepath.Join(dir, "engine.json"), broken.File)
	}
	_, err = OpenFolder(makeFolder(t, map[string]string{"engine.json/": ""}))
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "file type")
}

// Each broken case has its own error, and beside it a good case stays good.
func TestBrokenCaseCostsNoOther(t *testing.T) {
	layers, codes := hexString(t, floatLayersHex), hexString(t, int8LayersHex)
	logits := hexString(t, floatLogitsHex)
	probes := func(shape, dtype string, n int) string {
		return string(st(`{"embed":{"dtype":"`+dtype+`","shape":`+shape+`,"data_offsets":[0,`+itoa(int64(n))+`]}}`, n))
	}
	tests := []struct {
		name  string
		side  string
		files map[string]string
		file  string // at fault
		want  string
	}{
		{"dump without case file", floatSide, map[string]string{"x.logits.bin": logits}, "x.json", "case file: got no such file"},
		{"case file without dump", floatSide, map[string]string{"x.json": caseJSON}, "x.json", "dumps of the case: got none"},
		{"broken case file", floatSide, map[string]string{"x.json": `{"text":"foobar"}`, "x.logits.bin": logits}, "x.json", `key "token_ids"`},
		{"case file that is a folder", floatSide, map[string]string{"x.json/": "", "x.logits.bin": logits}, "x.json", "file type"},
		{"dump that is a folder", floatSide, map[string]string{"x.json": caseJSON, "x.layers.bin/": ""}, "x.layers.bin", "file type"},
		{"layers of a type nobody declared", `{"name":"e","logits":"f32"}`, map[string]string{"x.json": caseJSON, "x.layers.bin": layers}, "engine.json", `key "layers": got nothing, want "f32" or "int8-scaled" (x.layers.bin is there)`},
		{"logits of a type nobody declared", `{"name":"e","layers":"f32"}`, map[string]string{"x.json": caseJSON, "x.logits.bin": logits}, "engine.json", `key "logits"`},
		{"a case named engine", floatSide, map[string]string{"engine.layers.bin": layers}, "engine", `got "engine"`},
		{"layers cut, logits good", floatSide, map[string]string{"x.json": caseJSON, "x.layers.bin": layers[:40], "x.logits.bin": logits}, "x.layers.bin", "8 of 24 bytes after byte 0x20"},
		{"layers good, logits cut", floatSide, map[string]string{"x.json": caseJSON, "x.layers.bin": layers, "x.logits.bin": logits[:20]}, "x.logits.bin", "4 of 16 bytes after byte 0x10"},
		{"more output ids than logit rows", floatSide, map[string]string{"x.json": `{"text":"foobar","token_ids":[4,5],"output_ids":[6,7,8]}`, "x.logits.bin": logits}, "x.json",
			"output_ids: got 3 ids, want 2, one for each logit row (in x.logits.bin)"},
		{"no output id for two logit rows", `{"name":"e","logits":"i32"}`, map[string]string{"x.json": `{"text":"foobar","token_ids":[4,5],"output_ids":[]}`, "x.logits.bin": hexString(t, int32LogitsHex)}, "x.json",
			"output_ids: got 0 ids, want 2"},
		{"a name with an escape sequence and a line break", floatSide, map[string]string{"\x1b[31mred\nx.json": caseJSON, "\x1b[31mred\nx.logits.bin": logits}, "\x1b[31mred\nx.json",
			`\x1b[31mred\nx.json": name of the case: got "\x1b[31mred\nx", want one without control characters`},
		{"a name that is no UTF-8", floatSide, map[string]string{"\xff.json": caseJSON, "\xff.logits.bin": logits}, "\xff.json", `got "\xff"`},
		{"int8 layers under a float side", floatSide, map[string]string{"x.json": caseJSON, "x.layers.bin": codes}, "x.layers.bin", "got 14 trailing bytes"},
		{"float layers under an int8 side", int8Side, map[string]string{"x.json": caseJSON, "x.layers.bin": layers}, "x.layers.bin", "24 of 38 bytes"},
		{"a scale of 0", int8Side, map[string]string{"x.json": caseJSON, "x.layers.bin": string(patched([]byte(codes), 51, 0))}, "x.layers.bin", "scale of row 1 at byte 0x33"},
		{"probes of another type", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": probes("[2,3]", "F16", 12)}, "x.probes.safetensors", `dtype of probe "embed": got F16, want F32`},
		{"probes of three dimensions", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": probes("[2,3,1]", "F32", 24)}, "x.probes.safetensors", `shape of probe "embed": got [2 3 1]`},
		{"probes at more positions than tokens", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": probes("[5,3]", "F32", 60)}, "x.probes.safetensors", "at most 4 positions"},
		{"probes at no position", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": probes("[0,3]", "F32", 0)}, "x.probes.safetensors", `shape of probe "embed": got [0 3], want [positions, width], each at least 1`},
		{"probes of no width", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": probes("[2,0]", "F32", 0)}, "x.probes.safetensors", `shape of probe "embed": got [2 0]`},
		{"no probe", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": string(st("{}", 0))}, "x.probes.safetensors", "tensors: got none"},
		{"probes cut", floatSide, map[string]string{"x.json": caseJSON, "x.probes.safetensors": probes("[2,3]", "F32", 24)[:70]}, "x.probes.safetensors", "data_offsets[1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(tt.files)
			files["engine.json"], files["good.json"] = tt.side, caseJSON
			files["good.probes.safetensors"] = probes("[4,3]", "F32", 48)
			dir := makeFolder(t, files)
			f, err := OpenFolder(dir)
			require.NoError(t, err)
			require.Len(t, f.Cases(), 2)
			for _, c := range f.Cases() {
				err := c.Check()
				if err != nil && !isPrintable(err.Error()) {
					t.Errorf("%q would reach a terminal raw", err)
				}
				if c.Name == "good" {
					require.NoError(t, err)
					continue
				}
				var e *FormatError
				require.ErrorAs(t, err, &e)
				require.Equal(t, filepath.Join(dir, tt.file), e.File)
				require.ErrorContains(t, err, tt.want)
			}
		})
	}
}

func TestDumpOfAnotherPrompt(t *testing.T) {
	for side, layers := range map[string]string{floatSide: floatLayersHex, int8Side: int8LayersHex} {
		dir := makeFolder(t, map[string]string{"engine.json": side, "x.layers.bin": hexString(t, layers),
			"x.json": `{"text":"a","token_ids":[4]}`})
		f, err := OpenFolder(dir)
		require.NoError(t, err)
		err = f.Cases()[0].Check()
		var e *FingerprintError
		require.ErrorAs(t, err, &e)
		require.EqualError(t, err, "dumpfmt: layer dump "+filepath.Join(dir, "x.layers.bin")+
			": prompt fingerprint at byte 0x10: got 0x85944171F73967E8, want 0xAF63DC4C8601EC8C")
	}
}

func TestHugeCaseFileIsNotRead(t *testing.T) {
	dir := makeFolder(t, map[string]string{"engine.json": floatSide, "x.json": ""})
	require.NoError(t, os.Truncate(filepath.Join(dir, "x.json"), 1<<40))
	var err error
	got := allocated(func() { _, err = ReadCaseFile(filepath.Join(dir, "x.json")) })
	require.ErrorContains(t, err, "size at byte 0x4000000: got 1099511627776 bytes")
	require.Less(t, got, uint64(1<<20))
}
