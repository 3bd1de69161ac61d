package canonical

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
)

// outcome is what we make of a text, as testdata/python_json.py spells it.
func outcome(t testing.TB, source []byte) string {
	v, err := Parse("x.json", source)
	if err != nil {
		var s *SyntaxError
		require.ErrorAs(t, err, &s)
		require.LessOrEqual(t, s.Offset, int64(len(source)))
		if _, err := parse("x.json", source, math.MaxInt, jsontext.AllowDuplicateNames(true)); s.Own && err == nil {
			return "D"
		}
		return "!"
	}
	var out [2]string
	for i, order := range []Order{InsertionOrder, SortedKeys} {
		b, err := v.Append(nil, order)
		require.NoError(t, err, "%q", source)
		sum := sha256.Sum256(b)
		streamed, err := v.SHA256(order)
		require.NoError(t, err)
		require.Equal(t, sum, streamed)
		if out[i] = hex.EncodeToString(b); len(b) > 256 {
			out[i] = "sha256:" + hex.EncodeToString(sum[:])
		}
	}
	return out[0] + " " + out[1]
}

// readable makes an outcome fit for a failure.
func readable(outcome string) string {
	words := strings.Fields(outcome)
	for i, w := range words {
		if b, err := hex.DecodeString(w); err == nil {
			words[i] = strconv.Quote(string(b))
		}
	}
	return strings.Join(words, " ")
}

// pieces is a text of the table: HEX or HEX*TIMES, joined by "+".
func pieces(t *testing.T, s string) []byte {
	var out []byte
	for _, p := range strings.Split(s, "+") {
		digits, times, repeated := strings.Cut(p, "*")
		n := 1
		b, err := hex.DecodeString(digits)
		require.NoError(t, err)
		if repeated {
			n, err = strconv.Atoi(times)
			require.NoError(t, err)
		}
		out = append(out, bytes.Repeat(b, n)...)
	}
	return out
}

// The hard cases, as CPython 3.11 decided them.
func TestHardCasesAreThoseOfPython(t *testing.T) {
	table, err := os.ReadFile("testdata/table.tsv")
	require.NoError(t, err)
	rows := strings.Split(strings.TrimSuffix(string(table), "\n"), "\n")
	require.Greater(t, len(rows), 500)
	for _, row := range rows {
		source, want, ok := strings.Cut(row, "\t")
		require.True(t, ok)
		text := pieces(t, source)
		if got := outcome(t, text); got != want {
			t.Errorf("%s: got %s, want %s", shorten(strconv.Quote(string(text))), readable(got), readable(want))
		}
	}
}

// The random documents: recorded is the SHA-256 of their sources and of Python's
// outcomes, a block at a time.
const (
	randomDocuments = 10_000
	blockDocuments  = 500
	recorded        = "testdata/random.sha256"
)

func TestRandomDocumentsAreThoseOfPython(t *testing.T) {
	f, err := os.Open(recorded)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	g := newGenerator(8)
	for block := range randomDocuments / blockDocuments {
		require.True(t, lines.Scan())
		sources, outcomes := sha256.New(), sha256.New()
		for range blockDocuments {
			doc := g.document()
			fmt.Fprintf(sources, "%x\n", doc)
			fmt.Fprintln(outcomes, outcome(t, doc))
		}
		want := strings.Fields(lines.Text())
		require.Len(t, want, 2)
		require.Equal(t, want[0], sum(sources), "block %d: these aren't the documents that Python read", block)
		require.Equal(t, want[1], sum(outcomes), "block %d: `make test-canonical` names the document", block)
	}
	require.False(t, lines.Scan())
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// TestRandomDocumentsAgainstPython asks the Python that PLUMBLINE_PYTHON names, a
// document at a time; with PLUMBLINE_RECORD=1 it writes what the test above reads.
func TestRandomDocumentsAgainstPython(t *testing.T) {
	python := os.Getenv("PLUMBLINE_PYTHON")
	if python == "" {
		t.Skip("PLUMBLINE_PYTHON is not set: make test-canonical sets it")
	}
	var in bytes.Buffer
	docs := make([][]byte, randomDocuments)
	g := newGenerator(8)
	for i := range docs {
		docs[i] = g.document()
		fmt.Fprintf(&in, "%x\n", docs[i])
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "testdata/python_json.py", "outcomes")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Len(t, lines, len(docs))
	count := map[string]int{}
	var record strings.Builder
	sources, outcomes := sha256.New(), sha256.New()
	for i, doc := range docs {
		if got := outcome(t, doc); got != lines[i] {
			t.Errorf("document %d, %q: got %s, Python says %s", i, doc, readable(got), readable(lines[i]))
		}
		count[lines[i][:1]]++
		fmt.Fprintf(sources, "%x\n", doc)
		fmt.Fprintln(outcomes, lines[i])
		if (i+1)%blockDocuments == 0 {
			fmt.Fprintf(&record, "%s %s\n", sum(sources), sum(outcomes))
			sources, outcomes = sha256.New(), sha256.New()
		}
	}
	t.Logf("of %d documents Python refuses %d and takes the last of two keys in %d", len(docs), count["!"], count["D"])
	if os.Getenv("PLUMBLINE_RECORD") != "" && !t.Failed() {
		require.NoError(t, os.WriteFile(recorded, []byte(record.String()), 0o666))
		return
	}
	want, err := os.ReadFile(recorded)
	require.NoError(t, err)
	require.Equal(t, string(want), record.String())
	table, err := exec.CommandContext(t.Context(), python, "-B", "testdata/python_json.py", "table").Output()
	require.NoError(t, err)
	want, err = os.ReadFile("testdata/table.tsv")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, table), "testdata/table.tsv isn't what this Python says")
}

func FuzzParse(f *testing.F) {
	g := newGenerator(1)
	for range 50 {
		f.Add(g.document())
	}
	f.Add([]byte(strings.Repeat("[", MaxDepth+2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse("x.json", data)
		if err != nil {
			var s *SyntaxError
			if !errors.As(err, &s) || s.Offset < 0 || s.Offset > int64(len(data)) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		for _, order := range []Order{InsertionOrder, SortedKeys} {
			once, err := v.Append(nil, order)
			if err != nil {
				t.Fatalf("%q: %v", data, err)
			}
			again, err := Parse("y.json", once)
			if err != nil {
				t.Fatalf("%q gives %q: %v", data, once, err)
			}
			if twice, err := again.Append(nil, order); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%q gives %q, then %q: %v", data, once, twice, err)
			}
		}
	})
}
