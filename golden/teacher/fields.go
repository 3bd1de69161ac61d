package teacher

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// layout is an object's keys, in order. A key with "?" the script doesn't look at,
// one with "!" is missed by a rule of its own; where another is missing the script
// ends with a traceback.
type layout []string

var (
	summaryLayout = layout{"executed!", "structural_target_receipt!", "prediction_plan_sha256", "reference_input"}
	inputLayout   = layout{"schema_version", "profile", "prediction_plan", "vocabulary_size", "target_limits", "examples",
		"source_teacher_authority", "sensitivity_authority", "allocator_authority", "selector_authority", "autoquant_authority",
		"runtime_dependency", "reference_input_sha256!"}
	planLayout = layout{"schema_version?", "dataset_partition_manifest_sha256?", "calibration_corpus_artifact_sha256?",
		"calibration_manifest_sha256?", "rendered_token_stream_sha256?", "limits?", "total_example_count?", "total_token_count?",
		"total_rendered_utf8_bytes?", "examples", "prediction_points", "greedy_prompts", "manifest_sha256"}
	planLimitsLayout   = layout{"max_examples?", "max_tokens?", "max_prediction_points?", "max_greedy_prompts?"}
	targetLimitsLayout = layout{"max_vocabulary_size?", "max_prediction_rows?", "max_target_bytes?", "top_k?"}
	exampleLayout      = layout{"stable_id", "render_mode", "token_ids"}
	receiptLayout      = layout{"stable_id", "render_mode", "token_count", "token_ids_sha256"}
	pointLayout        = layout{"point_ordinal", "stable_id", "kind", "prefix_token_count", "prefix_token_ids_sha256"}
	promptLayout       = layout{"stable_id", "prefix_token_count?", "prefix_token_ids_sha256"}
)

func (l layout) name(i int) string { return strings.TrimRight(l[i], "?!") }

func (l layout) index(key string) int {
	for i := range l {
		if l.name(i) == key {
			return i
		}
	}
	return -1
}

// place is where in a plan something is, and what it is held to there.
type place struct {
	rule    Rule
	example string
	point   int
	what    string
}

func (p place) of(rule Rule) place { p.rule = rule; return p }

// at is the place of a member.
func (p place) at(key string) place {
	if p.what == "" {
		p.what = key
	} else {
		p.what += "." + key
	}
	return p
}

// checker collects what is wrong with one file.
type checker struct {
	file     string
	problems []Problem
}

// mostProblems are kept of a file; nobody reads on.
const mostProblems = 1000

func (c *checker) add(p place, script Script, got, want string) {
	if len(c.problems) < mostProblems {
		c.problems = append(c.problems, Problem{Rule: p.rule, File: c.file, Example: p.example, Point: p.point, What: p.what, Got: got, Want: want, Script: script})
	}
}

// differ reports got where it isn't want.
func (c *checker) differ(p place, script Script, got, want any) {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		c.add(p, script, g, w)
	}
}

// unlike reports a value whose canonical bytes aren't those of want. Two strings are
// shown without their quotes.
func (c *checker) unlike(p place, script Script, got, want canonical.Value) {
	if same(got, want) {
		return
	}
	g, ok := got.Text()
	w, ok2 := want.Text()
	if !ok || !ok2 {
		g, w = got.String(), want.String()
	}
	c.add(p, script, g, w)
}

// fields holds v to be an object of that layout. Only one that isn't an object is
// false.
func (c *checker) fields(v canonical.Value, p place, l layout) bool {
	if v.Kind() != canonical.KindObject {
		c.add(p, Dies, v.String(), "an object")
		return false
	}
	p.rule = RuleFields
	members, sound := v.Members(), true
	for _, m := range members {
		if l.index(m.Key) < 0 {
			c.add(p.at(m.Key), Accepts, "a key that isn't known", "none but "+l.String())
			sound = false
		}
	}
	for i, k := range l {
		if _, ok := v.Get(l.name(i)); ok {
			continue
		}
		sound = false
		switch {
		case strings.HasSuffix(k, "!"):
		case strings.HasSuffix(k, "?"):
			c.add(p.at(l.name(i)), Accepts, "no such key", "one")
		default:
			c.add(p.at(k), Dies, "no such key", "one")
		}
	}
	for i := 0; sound && i < len(members); i++ {
		if members[i].Key != l.name(i) {
			c.add(p.at(members[i].Key), Accepts, fmt.Sprintf("as key %d", i+1), fmt.Sprintf("%s there: the order of keys is part of the hash", l.name(i)))
			break
		}
	}
	return true
}

// String lists the keys.
func (l layout) String() string {
	names := make([]string, len(l))
	for i := range l {
		names[i] = l.name(i)
	}
	return strings.Join(names, ", ")
}

// list returns a member that has to be an array; ok is false where it is missing,
// which fields has reported, or something else.
func (c *checker) list(v canonical.Value, key string, p place) (list canonical.Value, ok bool) {
	list, ok = v.Get(key)
	if ok && list.Kind() != canonical.KindArray {
		c.add(p.at(key), Dies, list.String(), "an array")
		return list, false
	}
	return list, ok
}

// text returns a member that has to be a string. Where the script compares it, and
// doesn't use it as text, script says what it makes of something else.
func (c *checker) text(v canonical.Value, key string, p place, script Script) (s string, ok bool) {
	m, ok := v.Get(key)
	if !ok {
		return "", false
	}
	if s, ok = m.Text(); !ok {
		c.add(p.of(RuleFields).at(key), script, m.String(), "a string")
	}
	return s, ok
}

// integer returns a member as the script's int() reads it. Anything but an integer is
// refused by a rule of our own; ok is false where the script can't read it either.
func (c *checker) integer(v canonical.Value, key string, p place) (n int64, ok bool) {
	m, ok := v.Get(key)
	if !ok {
		return 0, false
	}
	if n, ok = scriptInt(m); !ok {
		c.add(p.at(key), Dies, m.String(), "an integer")
		return 0, false
	}
	if m.Kind() != canonical.KindInteger {
		c.add(p.of(RuleFields).at(key), Accepts, spelled(m), "an integer")
	}
	return n, true
}

// count returns a member of which the script knows nothing: an integer, 0 or more.
func (c *checker) count(v canonical.Value, key string, p place) (n int64, ok bool) {
	m, ok := v.Get(key)
	if !ok {
		return 0, false
	}
	if n, ok = m.Int(); !ok || n < 0 {
		c.add(p.of(RuleFields).at(key), Accepts, spelled(m), "an integer, 0 or more")
		return 0, false
	}
	return n, true
}

// spelled is a number as the file spells it, or what else v is.
func spelled(v canonical.Value) string {
	if s, ok := v.Number(); ok {
		return s
	}
	return v.String()
}

func (c *checker) boolean(v canonical.Value, key string, p place) {
	if m, ok := v.Get(key); ok && m.Kind() != canonical.KindBool {
		c.add(p.of(RuleFields).at(key), Accepts, m.String(), "true or false")
	}
}

// hash256 demands a SHA-256 in lower-case hexadecimal.
func (c *checker) hash256(v canonical.Value, key string, p place) {
	if m, ok := v.Get(key); ok {
		if _, ok := parseSum(m); !ok {
			c.add(p.of(RuleFields).at(key), Accepts, m.String(), "64 lower-case hexadecimal digits")
		}
	}
}

func parseSum(v canonical.Value) (s Sum, ok bool) {
	text, ok := v.Text()
	if !ok || len(text) != 2*len(s) {
		return s, false
	}
	for i := range s {
		high, low := strings.IndexByte(hexDigits, text[2*i]), strings.IndexByte(hexDigits, text[2*i+1])
		if high < 0 || low < 0 {
			return Sum{}, false
		}
		s[i] = byte(high<<4 | low)
	}
	return s, true
}

const hexDigits = "0123456789abcdef"
