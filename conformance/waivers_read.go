package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// maxWaivers bounds a file of waivers, in bytes.
const maxWaivers = 1 << 20

// ReadWaivers reads a file of waivers, {"waivers": [{"check", "case", "probe", "reason",
// "expires"}]}, where probe may be left out. It is strict: an unknown or repeated key,
// a value of another type, a bad date and two waivers for the same thing are refused.
// name is the file's, for errors. What only a run knows, the checks and today's date,
// Evaluate holds the waivers to.
func ReadWaivers(r io.Reader, name string) ([]Waiver, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxWaivers+1))
	if err != nil {
		return nil, fmt.Errorf("conformance: %s: %w", name, err)
	}
	if len(data) > maxWaivers {
		return nil, fmt.Errorf("conformance: %s: size: got more than %d bytes, want at most that", name, maxWaivers)
	}
	if err := dumpfmt.CheckJSON(name, data); err != nil {
		return nil, fmt.Errorf("conformance: waivers: %w", err)
	}
	file, got, want := members(data, "waivers")
	if got == "" && file["waivers"] == nil {
		got, want = `no key "waivers"`, "one"
	}
	if got != "" {
		return nil, fmt.Errorf("conformance: %s: got %s, want %s", name, got, want)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(file["waivers"], &raw); err != nil || raw == nil {
		return nil, &WaiverError{File: name, Index: -1, Got: short(file["waivers"]), Want: "a list"}
	}
	var out []Waiver
	for i, element := range raw {
		w, bad := readWaiver(element, i)
		for j, other := range out {
			if bad == nil && other.sameAs(w) {
				bad = &WaiverError{Index: i, Got: "what waivers[" + strconv.Itoa(j) + "] waives", Want: "each check, case and probe once"}
			}
		}
		if bad != nil {
			bad.File = name
			return nil, bad
		}
		out = append(out, w)
	}
	return out, nil
}

func readWaiver(element json.RawMessage, i int) (Waiver, *WaiverError) {
	var w Waiver
	ms, got, want := members(element, "check", "case", "probe", "reason", "expires")
	if got != "" {
		return w, &WaiverError{Index: i, Got: got, Want: want}
	}
	for _, f := range []struct {
		key string
		dst *string
	}{{"check", &w.Check}, {"case", &w.Case}, {"probe", &w.Probe}, {"reason", &w.Reason}, {"expires", &w.Expires}} {
		raw, has := ms[f.key]
		if !has {
			continue
		}
		var s *string
		if err := json.Unmarshal(raw, &s); err != nil || s == nil {
			return w, &WaiverError{Index: i, Field: f.key, Got: short(raw), Want: "a string"}
		}
		if *f.dst = *s; f.key == "probe" && *s == "" {
			return w, &WaiverError{Index: i, Field: f.key, Got: `""`, Want: "a place such as blocks.7.resid_post, or no such key"}
		}
	}
	return w, w.check(i)
}

// members reads an object that has no other keys; got and want are set where it does,
// or where it is none. Keys are compared letter by letter, which encoding/json doesn't.
func members(data []byte, known ...string) (ms map[string]json.RawMessage, got, want string) {
	if err := json.Unmarshal(data, &ms); err != nil || ms == nil {
		return nil, short(data), "an object"
	}
	var unknown []string
	for key := range ms {
		if !slices.Contains(known, key) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Sprintf("the key %q", unknown[0]), "no other than " + strings.Join(known, ", ")
	}
	return ms, "", ""
}

func short(raw []byte) string {
	if len(raw) > 60 {
		return strconv.Quote(string(raw[:60])) + "…"
	}
	return string(raw)
}
