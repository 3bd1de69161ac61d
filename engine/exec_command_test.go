package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The expected words are those of dash (sh -c 'printf "[%s]\n" …').
func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		``:                        nil,
		"  \t\n":                  nil,
		`a`:                       {"a"},
		` a  b	c `:                {"a", "b", "c"},
		`'a b' "c d"`:             {"a b", "c d"},
		`a'b'"c"d`:                {"abcd"},
		`'' ""`:                   {"", ""},
		`'a\b'`:                   {`a\b`},
		`"a\b\"\\\$"`:             {`a\b"\$`},
		`a\ b \'c \"`:             {"a b", "'c", `"`},
		`'a"b' "c'd"`:             {`a"b`, "c'd"},
		"a\\\nb":                  {"ab"},
		"\"a\\\nb\"":              {"ab"},
		`'$x | * ;' a#b a~`:       {"$x | * ;", "a#b", "a~"},
		`--x={dir} '{ids}' {{a}}`: {"--x={dir}", "{ids}", "{{a}}"},
		`python3 -c "print('ä')"`: {"python3", "-c", "print('ä')"},
		`a\|b \$x \*`:             {"a|b", "$x", "*"},
		`C:\\x`:                   {`C:\x`},
		`e {"a":1}`:               {"e", "{a:1}"},
	} {
		got, err := splitWords(line, "linux")
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
}

// Paths of Windows. The expected words of quotes and backslashes are those of Microsoft's
// table in "Parsing C command-line arguments"; the rest is as elsewhere.
func TestSplitWordsOfWindows(t *testing.T) {
	for line, want := range map[string][]string{
		`C:\engines\my.exe --ids {ids}`:           {`C:\engines\my.exe`, "--ids", "{ids}"},
		`"C:\Program Files\my.exe" --out={dir}\x`: {`C:\Program Files\my.exe`, `--out={dir}\x`},
		`\\server\share\my.exe {layers}`:          {`\\server\share\my.exe`, "{layers}"},
		`"a b c" d e`:                             {"a b c", "d", "e"},
		`"ab\"c" "\\" d`:                          {`ab"c`, `\`, "d"},
		`a\\\b d"e f"g h`:                         {`a\\\b`, "de fg", "h"},
		`a\\\"b c d`:                              {`a\"b`, "c", "d"},
		`a\\\\"b c" d e`:                          {`a\\b c`, "d", "e"},
		`'C:\a b\c.exe' x\`:                       {`C:\a b\c.exe`, `x\`},
		`PROGRA~1\x.exe`:                          {`PROGRA~1\x.exe`},
	} {
		got, err := splitWords(line, "windows")
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
	_, err := splitWords(`"C:\a\" b`, "windows") // the quote is text, and nothing closes
	require.ErrorContains(t, err, "at byte 0: got a double quote that nothing closes")
	_, err = splitWords(`a | b`, "windows")
	require.ErrorContains(t, err, "needs a shell")
}

func TestSplitWordsRefuses(t *testing.T) {
	for line, want := range map[string]string{
		`a 'b`:    "at byte 2: got a single quote",
		`a "b`:    "at byte 2: got a double quote",
		`a "b\`:   "at byte 2: got a double quote",
		`a \`:     "at byte 2: got a backslash",
		"a\x00b":  "at byte 1: got a NUL byte",
		`a | b`:   "at byte 2: got '|' outside quotes, which needs a shell",
		`a > b`:   "at byte 2: got '>'",
		`a $HOME`: "at byte 2: got '$'",
		`a "$x"`:  "at byte 3: got '$' in double quotes",
		"a `b`":   "at byte 2: got '`'",
		"a \"`b`": "at byte 3: got '`' in double quotes",
		`a *.bin`: "at byte 2: got '*'",
		`a ~/x`:   "at byte 2: got '~'",
		`a # b`:   "at byte 2: got '#'",
		`a; b`:    "at byte 1: got ';'",
		`(a)`:     "at byte 0: got '('",
		`a b&`:    "at byte 3: got '&'",
	} {
		_, err := splitWords(line, "linux")
		var bad *CommandError
		require.ErrorAs(t, err, &bad, line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestPlaceholders(t *testing.T) {
	values := map[string]string{"ids": "1,2", "dir": "/tmp/x"}
	for line, want := range map[string][]string{
		`a {ids} --out={dir}/f`:    {"a", "1,2", "--out=/tmp/x/f"},
		`{dir}/bin '{ids} {dir}'`:  {"/tmp/x/bin", "1,2 /tmp/x"},
		`a {{ids}} {ids}`:          {"a", "{ids}", "1,2"},
		`awk '{{print}}'`:          {"awk", "{print}"},
		`a '{"x":1}' {} {A} '{ }'`: {"a", `{"x":1}`, "{}", "{A}", "{ }"},
	} {
		c, err := parseCommand(line, false, "ids", "dir")
		require.NoError(t, err, line)
		got, err := c.argv(values)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	c, err := parseCommand(`a "$X" {ids} | b {dir}`, true, "ids", "dir")
	require.NoError(t, err)
	got, err := c.argv(values)
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/sh", "-c", `a "$X" 1,2 | b /tmp/x`}, got)
}

// A value is not looked through for placeholders again.
func TestPlaceholdersOnce(t *testing.T) {
	c, err := parseCommand("a {dir}", false, "dir")
	require.NoError(t, err)
	got, err := c.argv(map[string]string{"dir": "/tmp/{dir}"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "/tmp/{dir}"}, got)
}

func TestCommandRefusedBeforeAnythingRuns(t *testing.T) {
	for line, want := range map[string]string{
		"":                  "got no program",
		"  ":                "got no program",
		"'' {ids} {dir}":    "got no program",
		"a {ids} {dirs}":    "at byte 8: got the placeholder {dirs}, want {ids}, {ids_file}, {text_file}, {probe_names}, {layers}, {logits}, {probes}, {dir}",
		"a {ids} {{dir}}":   "can't know the answer's place: got none of {layers}, {logits}, {probes}, {dir}",
		"a {layers}":        "can't know the prompt: got none of {ids}, {ids_file}, {text_file}",
		"a {ids} {dir} 'b ": "a single quote",
	} {
		_, err := Exec(line, ProgramOptions{})
		var bad *CommandError
		require.ErrorAs(t, err, &bad, line)
		require.ErrorContains(t, err, want)
	}
	_, err := Protocol("a {ids}", ProgramOptions{})
	require.ErrorContains(t, err, "got the placeholder {ids}, want none: the cases come on standard input")
}

func TestTail(t *testing.T) {
	tl := tail{limit: 4}
	for _, step := range []struct{ write, want string }{
		{"", ""}, {"ab", "ab"}, {"cd", "abcd"}, {"e", "bcde"}, {"fghijklmnop", "mnop"}, {"q", "nopq"}, {"rst", "qrst"}, {"uv", "stuv"}, {"wxyz", "wxyz"},
	} {
		n, err := tl.Write([]byte(step.write))
		require.NoError(t, err)
		require.Equal(t, len(step.write), n)
		require.Equal(t, step.want, tl.String())
		require.LessOrEqual(t, len(tl.buf), 8)
	}
}
