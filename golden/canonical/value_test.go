package canonical

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse("x.json", []byte(text))
	require.NoError(t, err)
	return v
}

func written(t *testing.T, v Value, o Order) string {
	t.Helper()
	b, err := v.Append(nil, o)
	require.NoError(t, err)
	return string(b)
}

func TestWhatAValueHolds(t *testing.T) {
	v := parsed(t, `{"n": null, "b": true, "i": -7, "zero": -0, "big": 9223372036854775808, "f": 1.50, "s": "é\n", "ids": [1, 2, 3], "mixed": [1, 2.0], "none": []}`)
	require.Equal(t, KindObject, v.Kind())
	require.Equal(t, 10, v.Len())
	get := func(key string) Value {
		m, ok := v.Get(key)
		require.True(t, ok, key)
		return m
	}
	require.Equal(t, KindNull, get("n").Kind())
	b, ok := get("b").Bool()
	require.True(t, b && ok)
	for key, want := range map[string]int64{"i": -7, "zero": 0} {
		n, ok := get(key).Int()
		require.True(t, ok)
		require.Equal(t, want, n)
	}
	_, ok = get("big").Int()
	require.False(t, ok, "beyond int64")
	_, ok = get("f").Int()
	require.False(t, ok)
	f, ok := get("f").Float()
	require.True(t, ok)
	require.Equal(t, 1.5, f)
	_, ok = get("i").Float()
	require.False(t, ok, "an integer is no float")
	for key, want := range map[string]string{"i": "-7", "zero": "-0", "big": "9223372036854775808", "f": "1.50"} {
		text, ok := get(key).Number()
		require.True(t, ok)
		require.Equal(t, want, text, "as it was spelled")
	}
	_, ok = get("s").Number()
	require.False(t, ok)
	s, ok := get("s").Text()
	require.True(t, ok)
	require.Equal(t, "é\n", s)
	_, ok = get("big").Text()
	require.False(t, ok)
	ids, ok := get("ids").Ints()
	require.True(t, ok)
	require.Equal(t, []int64{1, 2, 3}, ids)
	ids, ok = parsed(t, "[1,9223372036854775807,-0]").Ints()
	require.True(t, ok)
	require.Equal(t, []int64{1, math.MaxInt64, 0}, ids)
	_, ok = get("mixed").Ints()
	require.False(t, ok)
	require.Equal(t, KindFloat, get("mixed").Index(1).Kind())
	require.Equal(t, Value{}, get("mixed").Index(2))
	ids, ok = get("none").Ints()
	require.True(t, ok)
	require.Empty(t, ids)
	_, ok = v.Get("missing")
	require.False(t, ok)
	_, ok = v.Ints()
	require.False(t, ok)
}

func TestCopiesLeaveTheirSourceAlone(t *testing.T) {
	v := parsed(t, `{"b":1,"a":2}`)
	require.Equal(t, `{"b":[3],"a":2}`, written(t, v.With("b", Ints([]int64{3})), InsertionOrder))
	require.Equal(t, `{"b":1,"a":2,"c":null}`, written(t, v.With("c", Null()), InsertionOrder))
	require.Equal(t, `{"a":2}`, written(t, v.Without("b"), InsertionOrder))
	require.Equal(t, `{"b":1,"a":2}`, written(t, v, InsertionOrder))
	require.Equal(t, `{"a":2,"b":1}`, written(t, v, SortedKeys))
}

func TestValuesMadeInGo(t *testing.T) {
	v := Object(Member{"s", String("<\u2028>")}, Member{"f", Float(1e16)}, Member{"a", Array(Bool(false), Int(math.MinInt64))})
	require.Equal(t, `{"s":"<`+"\u2028"+`>","f":1e+16,"a":[false,-9223372036854775808]}`, written(t, v, InsertionOrder))
	deep := Null()
	for range MaxDepth + 1 {
		deep = Array(deep)
	}
	for what, v := range map[string]Value{
		"NaN": Float(math.NaN()), "Inf": Array(Float(math.Inf(-1))), "UTF-8": String("\xff"), "key": Object(Member{"\xff", Null()}),
		"twice": Object(Member{"a", Null()}, Member{"b", Null()}, Member{"a", Null()}), "deep": deep,
	} {
		for _, order := range []Order{InsertionOrder, SortedKeys} {
			var e *ValueError
			_, err := v.Append(nil, order)
			require.ErrorAs(t, err, &e, what)
			_, err = v.SHA256(order)
			require.ErrorAs(t, err, &e, what)
		}
	}
}

// A failing writer is told, wherever in the value it fails.
func TestWriteTellsTheWritersError(t *testing.T) {
	long := make([]int64, 100_000)
	for _, v := range []Value{Int(1), Ints(long), Array(String(strings.Repeat("x", 100_000)), Null()), Object(Member{"a", Ints(long)}, Member{"b", Null()})} {
		require.ErrorIs(t, v.Write(failing{}, InsertionOrder), errFailing)
	}
}

var errFailing = errors.New("no room")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFailing }

func TestStringIsShort(t *testing.T) {
	require.Equal(t, `{"a":[1,2]}`, parsed(t, `{"a": [1, 2]}`).String())
	require.Equal(t, 61, len([]rune(Ints(make([]int64, 1_000_000)).String())))
	require.Equal(t, 61, len([]rune(Array(make([]Value, 1_000_000)...).String())))
}

func TestErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    `canonical: x.json: at byte 0x0: got the end, want a JSON value`,
		`{"a":[1,`:                            `canonical: x.json: at byte 0x8, /a: got the end, want the rest of the JSON value`,
		`{"a":1} x`:                           `canonical: x.json: at byte 0x8: got more after the JSON value, want the end`,
		`{"a":{"b":1,"b":2}}`:                 `canonical: x.json: at byte 0xC, /a/b: got key "b" twice, want each key once (a rule of our own)`,
		`{"a":[0,1e999]}`:                     `canonical: x.json: at byte 0x8, /a/1: got 1e999, want a number within float64`,
		`[1,NaN]`:                             `canonical: x.json: at byte 0x3, /1: got invalid character 'N' at start of value`,
		"\xef\xbb\xbf{}":                      `canonical: x.json: at byte 0x0: got a byte order mark, want a JSON value`,
		`["a\ud800"]`:                         `canonical: x.json: at byte 0x3, /0: got invalid surrogate pair ` + "`\\ud800\"]` in string",
		"[\"\xff\"]":                          `canonical: x.json: at byte 0x2, /0: got invalid UTF-8`,
		strings.Repeat("[", 10_000):           `canonical: x.json: at byte 0x3DE: got deeper nesting, want at most 990 levels`,
		"[" + strings.Repeat("7", 4301) + "]": `canonical: x.json: at byte 0x1, /0: got an integer of 4301 digits, want at most 4300, as many as CPython reads`,
	} {
		_, err := Parse("x.json", []byte(text))
		require.EqualError(t, err, want, shorten(text))
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	require.NoError(t, os.WriteFile(path, []byte(` [1, 2] `), 0o666))
	v, err := ReadFile(path, 8)
	require.NoError(t, err)
	require.Equal(t, `[1,2]`, written(t, v, InsertionOrder))
	_, err = ReadFile(path, 7)
	require.EqualError(t, err, "canonical: "+path+": got 8 bytes, want at most 7 (not read)")
	var size *SizeError
	require.ErrorAs(t, err, &size)
	_, err = ReadFile(filepath.Join(dir, "none"), 7)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = ReadFile(dir, 1<<30)
	require.Error(t, err)
}

// A gigabyte, of which a sparse file has none on disk, isn't read.
func TestReadFileRefusesAGigabyteUnread(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(1<<30))
	require.NoError(t, f.Close())
	before := testing.AllocsPerRun(1, func() {
		_, err = ReadFile(path, 256<<20)
	})
	require.EqualError(t, err, "canonical: "+path+": got 1073741824 bytes, want at most 268435456 (not read)")
	require.Less(t, before, 50.0)
}

// What has no size, or a wrong one, is held to the limit too.
func TestReadFileWithoutASize(t *testing.T) {
	const path = "/proc/self/status"
	if st, err := os.Stat(path); err != nil || st.Size() > 0 {
		t.Skip("no regular file here that doesn't say its size")
	}
	_, err := ReadFile(path, 16)
	var size *SizeError
	require.ErrorAs(t, err, &size)
}

// Of many small values each takes far more memory than text.
func TestParseAtMost(t *testing.T) {
	for text, c := range map[string]struct {
		values int
		refuse string // where one fewer is allowed
	}{
		`[{},{},{}]`:        {4, "0x6"},
		`{"a":[],"b":null}`: {3, "0xB"},
		`[1,2,3]`:           {1, "0x0"}, // as many integers as you like
		`[1,2,3.5]`:         {4, "0x8"},
		`[1.5,2,3]`:         {4, "0x6"},
	} {
		_, err := ParseAtMost("x.json", []byte(text), c.values)
		require.NoError(t, err, text)
		_, err = ParseAtMost("x.json", []byte(text), c.values-1)
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.ErrorContains(t, err, "canonical: x.json: at byte "+c.refuse+": got more values, want at most ", text)
		require.True(t, syntax.Own, "Python takes it")
	}
}
