package bisect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Group is a named set of cases.
type Group struct {
	Name  string
	Cases []string
}

// AllGroup is the one group when none are given.
const AllGroup = "all"

// ParseGroups reads a JSON object {"group": ["case", …], …} and keeps its
// order. A group or a case that stands there twice, and an empty group, are
// errors: they'd give a summary that isn't what its name says. name stands in
// for the file in errors.
func ParseGroups(name string, data []byte) ([]Group, error) {
	bad := func(format string, args ...any) ([]Group, error) {
		return nil, fmt.Errorf("bisect: groups %s: %s", name, fmt.Sprintf(format, args...))
	}
	if dumpfmt.HasBOM(data) {
		return bad("got a byte order mark, want an object of lists")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	t, err := dec.Token()
	if err != nil {
		return bad("%v", err)
	}
	if t != json.Delim('{') {
		return bad("got %v, want an object of lists", t)
	}
	var groups []Group
	groupOf := map[string]string{}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return bad("%v", err)
		}
		g := Group{Name: key.(string)}
		if err := dec.Decode(&g.Cases); err != nil {
			return bad("group %q: %v", g.Name, err)
		}
		if seen[g.Name] {
			return bad("group %q: got it twice, want it once", g.Name)
		}
		if len(g.Cases) == 0 {
			return bad("group %q: got 0 cases, want at least 1", g.Name)
		}
		seen[g.Name] = true
		for _, c := range g.Cases {
			if other, ok := groupOf[c]; ok {
				return bad("case %q: got it in %q and %q, want it in one", c, other, g.Name)
			}
			groupOf[c] = g.Name
		}
		groups = append(groups, g)
	}
	if _, err := dec.Token(); err != nil {
		return bad("%v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad("got more after the object, want its end")
	}
	if len(groups) == 0 {
		return bad("got 0 groups, want at least 1")
	}
	return groups, nil
}

// Everything puts all cases into one group.
func Everything(cases []Case) []Group {
	g := Group{Name: AllGroup}
	for _, c := range cases {
		g.Cases = append(g.Cases, c.Name)
	}
	return []Group{g}
}

// CheckGroups returns an error when a group names a case that wasn't looked at.
func CheckGroups(groups []Group, cases []Case) error {
	known := map[string]bool{}
	for _, c := range cases {
		known[c.Name] = true
	}
	for _, g := range groups {
		for _, c := range g.Cases {
			if !known[c] {
				return fmt.Errorf("bisect: groups: group %q: case %q: got no such case in either folder", g.Name, c)
			}
		}
	}
	return nil
}
