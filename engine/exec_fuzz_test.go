package engine

import (
	"slices"
	"strings"
	"testing"
)

// FuzzSplitWords: what is quoted word by word comes back word by word, and no
// line at all makes it panic.
func FuzzSplitWords(f *testing.F) {
	for _, s := range []string{"", "a b", "it's", `"x" \`, "a\nb", "$x | *", "ä{ids}"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		_, _ = splitWords(a, "linux")
		if strings.Contains(a+b, "\x00") {
			return
		}
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		got, err := splitWords(quote(a)+" "+quote(b), "linux")
		if err != nil || !slices.Equal(got, []string{a, b}) {
			t.Errorf("got %q, %v, want %q", got, err, []string{a, b})
		}
	})
}

// FuzzAnswer: whatever a program says, what passes as an answer has one verdict,
// and what passes as capabilities a name and known types.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"ok":true}`, `{"unsupported":"x","case":"a"}`, `{"error":""}`, `{"ok":true,"error":"x"}`, `{`, `null`, `{"ok":true}{`,
		`{"plumbline":1,"name":"x","layers":"f32","logits":"i32","probes":["embed"],"smoke":true,"features":["a","b"],"free":[{}]}`,
		`{"plumbline":1,"name":"x","probes":["blocks.0.q",null]}`, `{"plumbline":1,"name":"x","features":["a","a"]}`, `{"ok":true,"ok":true}`,
		`{"plumbline":1e0,"name":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if a, err := parseAnswer(line); err == nil {
			n := 0
			for _, is := range []bool{a.OK, a.Unsupported != nil, a.Error != nil} {
				if is {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%q passed with %d verdicts", line, n)
			}
		}
		if c, err := parseCapabilities(line); err == nil {
			if c.Name == "" || !slices.Contains([]string{"", LayersFloat32, LayersInt8Scaled}, c.Layers) ||
				!slices.Contains([]string{"", LogitsFloat32, LogitsInt32}, c.Logits) {
				t.Errorf("%q passed as %+v", line, c)
			}
			for i, f := range c.Features {
				if f == "" || slices.Contains(c.Features[:i], f) {
					t.Errorf("%q passed with the features %q", line, c.Features)
				}
			}
			for _, p := range c.Probes {
				if !p.known() {
					t.Errorf("%q passed with the probes %q", line, c.Probes)
				}
			}
		}
	})
}
