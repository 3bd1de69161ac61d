package trace

import (
	"fmt"
	"slices"
)

// Variant is a source as one condition has it, tokenised.
type Variant struct {
	// TokenIDs is all of the input: the token at the start, then the text's.
	TokenIDs []int
	// ContentPositions are the places in TokenIDs of the tokens that lie within the
	// source's text, ascending.
	ContentPositions []int
	// BoundaryCrossing is how many tokens lie partly in the source's text and partly
	// in what stands around it. They are left out of target_content.
	BoundaryCrossing int
}

// content are the ids at the content positions.
func (v Variant) content() []int {
	ids := make([]int, len(v.ContentPositions))
	for i, p := range v.ContentPositions {
		ids[i] = v.TokenIDs[p]
	}
	return ids
}

// Encode turns a text into ids, without any that it doesn't have, and gives the
// bytes of the text that each covers.
type Encode func(text string) (ids []int, spans [][2]int, err error)

// Tokenise gives the variants of a source, in the order of the plan's conditions.
// boundary has the id of each token that an input starts with, by name. A token
// counts as content when its bytes lie within the source's and aren't empty; one
// that only overlaps them crosses the boundary.
func (p Plan) Tokenise(encode Encode, boundary map[string]int, content string) ([]Variant, error) {
	variants := make([]Variant, len(p.Conditions))
	for i, c := range p.Conditions {
		first, ok := boundary[c.Boundary]
		if !ok {
			return nil, &UsageError{"Tokenise", "boundary", "no id for " + c.Boundary, "one for each of the plan's"}
		}
		text, start, end := p.Text(c, content)
		ids, spans, err := encode(text)
		if err != nil {
			return nil, fmt.Errorf("trace: %s: %w", c.Name, err)
		}
		if len(spans) != len(ids) {
			return nil, &UsageError{"Tokenise", "spans", fmt.Sprint(len(spans)), fmt.Sprintf("one per token, %d", len(ids))}
		}
		v := Variant{TokenIDs: append([]int{first}, ids...)}
		for k, s := range spans {
			switch from, to := s[0], s[1]; {
			case from >= start && to <= end && to > from:
				v.ContentPositions = append(v.ContentPositions, k+1)
			case from < end && to > start:
				v.BoundaryCrossing++
			}
		}
		variants[i] = v
	}
	return variants, nil
}

// CheckContent is the check ContentIdentity on one source: every condition has the
// same content tokens, at places that are there, and starts with its own token.
// boundary are the ids of those, or nil for a source that came tokenised: then
// conditions must only agree with each other. It returns how many content tokens
// were compared.
func (p Plan) CheckContent(source string, variants []Variant, boundary map[string]int) (problems []Problem, compared int) {
	bad := func(c, what string, got, want any) {
		problems = append(problems, Problem{place(source, c), what, fmt.Sprint(got), fmt.Sprint(want)})
	}
	if len(variants) != len(p.Conditions) {
		bad("", "variants", len(variants), fmt.Sprintf("one per condition, %d", len(p.Conditions)))
		return problems, 0
	}
	starts := map[string]int{}
	for name, id := range boundary {
		starts[name] = id
	}
	for i, c := range p.Conditions {
		v := variants[i]
		if !p.checkVariant(c, v, bad) {
			continue
		}
		want, known := starts[c.Boundary]
		if !known && boundary == nil {
			want, starts[c.Boundary] = v.TokenIDs[0], v.TokenIDs[0]
			for name, id := range starts {
				if name != c.Boundary && id == want {
					bad(c.Name, "token at the start", want, "another than that of "+name)
				}
			}
		}
		if v.TokenIDs[0] != want {
			bad(c.Name, "token at the start", v.TokenIDs[0], fmt.Sprintf("%d, the tokenizer's %s", want, c.Boundary))
		}
	}
	if len(problems) > 0 {
		return problems, 0
	}
	first := variants[0].content()
	for i, c := range p.Conditions[1:] {
		ids := variants[i+1].content()
		if len(ids) != len(first) {
			bad(c.Name, "content tokens", len(ids), fmt.Sprintf("%d, as in %s", len(first), p.Conditions[0].Name))
			continue
		}
		for k := range ids {
			if ids[k] != first[k] {
				bad(c.Name, fmt.Sprintf("content token %d", k), ids[k], fmt.Sprintf("%d, as in %s", first[k], p.Conditions[0].Name))
				break
			}
		}
		compared += len(ids)
	}
	return problems, compared
}

// checkVariant checks a variant by itself.
func (p Plan) checkVariant(c Condition, v Variant, bad func(c, what string, got, want any)) bool {
	ok := true
	fail := func(what string, got, want any) { bad(c.Name, what, got, want); ok = false }
	if i := slices.IndexFunc(v.TokenIDs, func(id int) bool { return id < 0 }); i >= 0 {
		fail(fmt.Sprintf("token %d", i), v.TokenIDs[i], "an id of 0 or more")
	}
	if len(v.TokenIDs) == 0 {
		fail("tokens", 0, "at least the one at the start")
	}
	if len(v.ContentPositions) == 0 {
		fail("content tokens", 0, "at least one that lies within the source's text")
	}
	for k, at := range v.ContentPositions {
		if at < 1 || at >= len(v.TokenIDs) || k > 0 && at <= v.ContentPositions[k-1] {
			fail(fmt.Sprintf("content position %d", k), at, fmt.Sprintf("1 to %d, ascending", len(v.TokenIDs)-1))
			break
		}
	}
	if most := len(v.TokenIDs) - 1 - len(v.ContentPositions); v.BoundaryCrossing < 0 || ok && v.BoundaryCrossing > most {
		fail("boundary crossing tokens", v.BoundaryCrossing, fmt.Sprintf("0 to %d, what the content leaves", max(most, 0)))
	}
	return ok
}

// CheckBoundaries compares a tokenizer's ids for the tokens that inputs start with
// to those that are expected of it, by name.
func (p Plan) CheckBoundaries(got, want map[string]int) error {
	seen := map[int]string{}
	for _, name := range p.Boundaries() {
		id, ok := got[name]
		if !ok || id < 0 {
			return &TokenError{What: "tokenizer contract: " + name, Got: "no id", Want: "the id of one token"}
		}
		if w, ok := want[name]; ok && w != id {
			return &TokenError{What: "tokenizer contract: " + name, Got: fmt.Sprint(id), Want: fmt.Sprint(w)}
		}
		if other, again := seen[id]; again {
			return &TokenError{What: "tokenizer contract: " + name, Got: fmt.Sprintf("%d, as %s", id, other), Want: "an id of its own"}
		}
		seen[id] = name
	}
	return nil
}

// Batch is the variants of a source as one batch: padded on the left to the length
// of the longest.
type Batch struct {
	IDs [][]int
	// Padding is how many tokens of each row are padding, which nothing attends to.
	// Positions count from the row's start all the same, padding included, as in the
	// reference.
	Padding []int
	Tokens  int
}

// PadLeft puts the variants side by side.
func PadLeft(variants []Variant, pad int) Batch {
	var b Batch
	for _, v := range variants {
		b.Tokens = max(b.Tokens, len(v.TokenIDs))
	}
	for _, v := range variants {
		n := b.Tokens - len(v.TokenIDs)
		b.IDs = append(b.IDs, append(slices.Repeat([]int{pad}, n), v.TokenIDs...))
		b.Padding = append(b.Padding, n)
	}
	return b
}
