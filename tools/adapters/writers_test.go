package adapters_test

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// vectors are the bytes of each file, put together by hand from the formats'
// description: little-endian u64 counts, the FNV-1a 64 of "foobar"
// (0x85944171F73967E8, a published test vector), capture mode 1; IEEE 754
// singles; two's complement.
var vectors = map[string]string{
	"a.layers.bin": `
		0200000000000000 0300000000000000 e86739f771419485 0100000000000000
		0000803f 000020c0 00004040
		cdcccc3d 00e07f47 00000080`, // 0.1 is 0x3DCCCCCD, 65504 is 0x477FE000, then -0
	"int8.bin": `
		0200000000000000 0300000000000000 e86739f771419485 0100000000000000
		0100004000000000 daffffffffffffff 01fe80
		ffffff7f00000000 0400000000000000 7f00ff`, // 2^30+1 and -38, 2^31-1 and 4
	"f32.bin": `0100000000000000 0300000000000000 0000003f 0000e040 000080bf`,
	"a.logits.bin": `
		0200000000000000 0200000000000000
		05000000 f9ffffff ffffff7f 00000080`,
	"none.bin": `0000000000000000 0000000000000000`,
	// 134 characters and two spaces make the header's 136 bytes, a multiple of 8.
	"a.probes.safetensors": "8800000000000000" + hex.EncodeToString([]byte(
		`{"embed":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},`+
			`"blocks.0.resid_post":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}}  `)) + `
		0000803f 00000040 000080bf 0000803e`,
	"engine.json": hex.EncodeToString([]byte(`{"name":"my engine","layers":"f32","logits":"i32","kv_cache":"int8"}` + "\n")),
}

// caseFiles are the two ways in which JSON may write the same case.
var caseFiles = map[string]string{
	"C":      `{"text":"foobar","token_ids":[4,5,151645],"output_ids":[6,0],"decoded":"a \"b\" \\c\u000a\u0009\u0001 ü 😀"}` + "\n",
	"Python": `{"text":"foobar","token_ids":[4,5,151645],"output_ids":[6,0],"decoded":"a \"b\" \\c\n\t\u0001 ü 😀"}` + "\n",
}

const decoded = "a \"b\" \\c\n\t\x01 ü 😀"

// compile builds a C file, as strictly as compilers go.
func compile(t *testing.T, compiler string, args ...string) string {
	t.Helper()
	cc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("no %s on this machine: the header can't be compiled here", compiler)
	}
	exe := filepath.Join(t.TempDir(), "program")
	out, err := exec.Command(cc, append(args, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Ic", "-o", exe)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return exe
}

func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine: the Python writer can't be run here")
	}
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	return path
}

// writers run a program that writes the vectors into a folder.
var writers = map[string]func(t *testing.T) []string{
	"C":      func(t *testing.T) []string { return []string{compile(t, "cc", "-std=c99", "testdata/vectors.c")} },
	"Python": func(t *testing.T) []string { return []string{python(t), "testdata/vectors.py"} },
}

func TestVectors(t *testing.T) {
	for name, writer := range writers {
		t.Run(name, func(t *testing.T) {
			argv := writer(t)
			dir := t.TempDir()
			write := func() []string {
				out, err := exec.Command(argv[0], append(argv[1:], dir)...).Output()
				require.NoError(t, err)
				return strings.Fields(string(out))
			}
			codes := write()
			for i, c := range codes {
				want := "0"
				if i >= len(vectors)+1 { // what must be refused
					want = "1"
				}
				require.Equal(t, want, c, "call %d", i)
			}
			require.GreaterOrEqual(t, len(codes), len(vectors)+1+4)
			wantFiles(t, dir, name)
			readBack(t, dir)

			// Nothing is overwritten, and nothing is left of the attempt.
			for name := range vectors {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o666))
			}
			for i, c := range write()[:len(vectors)+1] {
				require.Equal(t, "17", c, "call %d: EEXIST", i)
			}
			for name := range vectors {
				got, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, "mine", string(got), name)
			}
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, len(vectors)+1)
		})
	}
}

// wantFiles compares every file of the folder byte for byte.
func wantFiles(t *testing.T, dir, writer string) {
	t.Helper()
	want := map[string][]byte{"a.json": []byte(caseFiles[writer])}
	for name, text := range vectors {
		data, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		require.NoError(t, err)
		want[name] = data
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, len(want))
	for name, data := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, hex.Dump(data), hex.Dump(got), name)
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.NotZero(t, st.Mode()&0o004, "%s: others may read it, as far as the umask allows", name)
	}
}

// readBack reads the folder with the readers of package dumpfmt.
func readBack(t *testing.T, dir string) {
	t.Helper()
	folder, err := dumpfmt.OpenFolder(dir)
	require.NoError(t, err)
	e := folder.Engine()
	require.Equal(t, []string{"my engine", "f32", "i32", "int8"}, []string{e.Name, e.Layers, e.Logits, e.KVCache})
	require.Len(t, folder.Cases(), 1)
	c := folder.Cases()[0]
	require.NoError(t, c.Check())
	require.Equal(t, "foobar", c.File.Text)
	require.Equal(t, []int{4, 5, 151645}, c.File.TokenIDs)
	require.Equal(t, []int{6, 0}, c.File.OutputIDs)
	require.Equal(t, decoded, *c.File.Decoded)
	d, err := dumpfmt.OpenInt8Layers(filepath.Join(dir, "int8.bin"))
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, d.CheckScales())
	codes := make([]int8, 3)
	s, err := d.RowCodes(0, codes)
	require.NoError(t, err)
	require.Equal(t, dumpfmt.Scale{M: 1<<30 + 1, E: -38}, s)
	require.Equal(t, []int8{1, -2, -128}, codes)
	for _, name := range []string{"f32.bin", "none.bin"} {
		l, err := dumpfmt.OpenFloatLogits(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	p, err := c.OpenProbes()
	require.NoError(t, err)
	defer p.Close()
	resid, err := p.Float32s("blocks.0.resid_post")
	require.NoError(t, err)
	values := make([]float32, 2)
	_, err = resid.ReadValues(values, 0)
	require.NoError(t, err)
	if values[0] != -1 || values[1] != 0.25 {
		t.Errorf("probe: got %v, want [-1 0.25]", values)
	}
}

// TestNoHalfFile: where the disk takes nothing more, there is no file, and no
// temporary one.
func TestNoHalfFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("file size limits are Unix's")
	}
	for name, writer := range writers {
		t.Run(name, func(t *testing.T) {
			argv := writer(t)
			dir := t.TempDir()
			// A limit of no blocks: every write fails, and the signal is ignored.
			line := `trap "" XFSZ; ulimit -f 0; "$@" | cat`
			out, err := exec.Command("sh", append([]string{"-c", line, "sh"}, append(argv, dir)...)...).Output()
			require.NoError(t, err)
			codes := strings.Fields(string(out))
			require.Greater(t, len(codes), len(vectors))
			for i, c := range codes[:len(vectors)+1] {
				require.Equal(t, "27", c, "call %d: EFBIG", i)
			}
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}

// TestThreadsOnOnePath: of many that write one path, one does, and its file is
// whole.
func TestThreadsOnOnePath(t *testing.T) {
	exe := compile(t, "cc", "-std=c99", "testdata/threads.c", "-pthread")
	dir := t.TempDir()
	out, err := exec.Command(exe, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 100, "no temporary file is left")
	for _, e := range entries {
		l, err := dumpfmt.OpenFloatLogits(filepath.Join(dir, e.Name()))
		require.NoError(t, err, "half a file")
		require.NoError(t, l.Close())
	}
}

// TestHeaderInCPlusPlus: the header is C++ as well.
func TestHeaderInCPlusPlus(t *testing.T) {
	src := filepath.Join(t.TempDir(), "a.cc")
	require.NoError(t, os.WriteFile(src, []byte("#include \"plumbline_dump.h\"\nint main() { return plumbline_logits(\"\", 0, 1, nullptr) == 0; }\n"), 0o666))
	compile(t, "c++", "-std=c++11", src)
}

// TestExamplesServeTheFakes: what an author copies passes the adapter's test.
func TestExamplesServeTheFakes(t *testing.T) {
	holds := func(t *testing.T, c engine.Candidate) {
		results, err := conformance.Smoke(t.Context(), c)
		require.NoError(t, err)
		for _, r := range results {
			assert.True(t, r.Holds, "%s: %s", r.Case, r.Why)
		}
		_, err = c.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: "foobar", TokenIDs: []int{4, 5}}})
		var un *engine.UnsupportedError
		require.ErrorAs(t, err, &un)
		assert.Equal(t, "only the fakes are answered", un.Why)
	}
	t.Run("C", func(t *testing.T) {
		exe := compile(t, "cc", "-std=c99", "c/example.c")
		c, err := engine.Exec("'"+exe+"' {ids_file} {text_file} {dir}", engine.ProgramOptions{})
		require.NoError(t, err)
		holds(t, c)
	})
	t.Run("Python", func(t *testing.T) {
		c, err := engine.Protocol("'"+python(t)+"' python/example.py", engine.ProgramOptions{})
		require.NoError(t, err)
		holds(t, c)
		require.NoError(t, c.Close())
	})
}

// TestWritersAreShort: an author reads what he takes along.
func TestWritersAreShort(t *testing.T) {
	for _, path := range []string{"c/plumbline_dump.h", "python/plumbline_dump.py"} {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Less(t, strings.Count(string(data), "\n"), 150, path)
	}
	_, err := os.Stat("python/__pycache__")
	require.True(t, errors.Is(err, fs.ErrNotExist), "the tests leave no byte code behind")
}
