package teacher

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// points holds each prediction point to the tokens of its example.
func (c *planChecker) points(points canonical.Value) {
	c.plan.Points = make([]Point, points.Len())
	for i := range c.plan.Points {
		c.plan.Points[i] = Point{Ordinal: i, Example: -1}
		c.point(i, points.Index(i))
	}
}

func (c *planChecker) point(i int, v canonical.Value) {
	at := place{rule: RulePrefix, point: i}
	if !c.fields(v, place{rule: RulePrefix, point: NoPoint, what: fmt.Sprintf("prediction_points[%d]", i)}, pointLayout) {
		return
	}
	id, ok := c.text(v, "stable_id", at, Dies)
	if !ok {
		return
	}
	at.example = id
	e, ok := c.byID[id]
	if !ok {
		c.add(at.of(RuleIdentity).at("stable_id"), Dies, "an example that the plan doesn't have", "one of its examples")
		return
	}
	p := &c.plan.Points[i]
	p.Example = e
	ids := c.plan.Examples[e].Tokens
	count, ok := c.integer(v, "prefix_token_count", at)
	if !ok {
		return
	}
	p.Prefix = clamp(count)
	member, _ := v.Get("prefix_token_count")
	got := spelled(member)
	switch n := int64(len(ids)); {
	case count > n:
		c.add(at.at("prefix_token_count"), Refuses, got, fmt.Sprintf("1 to %d, the example's tokens", n))
	default:
		if count < 1 {
			c.add(at.at("prefix_token_count"), Accepts, got, fmt.Sprintf("1 to %d, the example's tokens", n))
		}
		c.prefix(v, at, p, scriptSlice(ids, count))
	}
	c.kind(v, at.of(RuleKind), p, count, ids)
}

func (c *planChecker) prefix(v canonical.Value, at place, p *Point, prefix []int) {
	const key = "prefix_token_ids_sha256"
	want, err := c.hash.sum([]byte(prefixFrame), prefix)
	if err != nil {
		return // the example's tokens are wrong
	}
	p.PrefixSHA256 = want
	if got, ok := v.Get(key); ok {
		c.unlike(at.at(key), Refuses, got, canonical.String(want.String()))
	}
}

// kindKeys are the keys of each kind, in the order in which the plans have them.
var kindKeys = [...]layout{
	TeacherForced:  {"kind", "target_token_index", "target_token_id"},
	GenerationNext: {"kind"},
}

func (c *planChecker) kind(v canonical.Value, at place, p *Point, count int64, ids []int) {
	kind, ok := v.Get("kind")
	if !ok {
		return
	}
	at = at.at("kind")
	if kind.Kind() != canonical.KindObject {
		c.add(at, Refuses, kind.String(), "a tagged object")
		return
	}
	tag, ok := kind.Get("kind")
	text, _ := tag.Text()
	k := slices.Index(kindNames[:], text)
	if k < 0 {
		got := tag.String()
		if !ok {
			got = "no tag"
		}
		c.add(at.at("kind"), Refuses, got, `"`+strings.Join(kindNames[:], `" or "`)+`"`)
		return
	}
	p.Kind = Kind(k)
	var got []string
	for _, m := range kind.Members() {
		got = append(got, m.Key)
	}
	want := kindKeys[k]
	if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		c.add(at, Refuses, "the keys "+strings.Join(got, ", "), "exactly "+want.String())
		return
	}
	if !slices.Equal(got, want) {
		c.add(at, Accepts, "the keys "+strings.Join(got, ", "), want.String()+": the order of keys is part of the hash")
	}
	if p.Kind == TeacherForced {
		c.forced(kind, at.of(RuleForcedTarget), p, count, ids)
	}
}

// forced: the target is the token after the prefix.
func (c *planChecker) forced(kind canonical.Value, at place, p *Point, count int64, ids []int) {
	index, ok := c.integer(kind, "target_token_index", at)
	if !ok {
		return
	}
	p.TargetIndex = clamp(index)
	indexAt := at.at("target_token_index")
	if index != count {
		c.add(indexAt, Refuses, fmt.Sprint(index), fmt.Sprintf("%d, the prefix's length", count))
		return
	}
	if index >= int64(len(ids)) {
		c.add(indexAt, Refuses, fmt.Sprint(index), fmt.Sprintf("a token of the example, which has %d", len(ids)))
		return
	}
	want, inside := scriptIndex(ids, index)
	if !inside {
		c.add(indexAt, Dies, fmt.Sprint(index), fmt.Sprintf("0 to %d", len(ids)-1))
		return
	}
	id, ok := c.integer(kind, "target_token_id", at)
	if !ok {
		return
	}
	p.TargetID = clamp(id)
	if id != int64(want) {
		c.add(at.at("target_token_id"), Refuses, fmt.Sprint(id), fmt.Sprintf("%d, token %d of the example", want, index))
	}
}

// schedule goes through the points as they are run: by example, and in order there.
// The script finds these only while it runs.
func (c *planChecker) schedule(points canonical.Value) {
	c.pointsOf = make([][]int, len(c.plan.Examples))
	for i, p := range c.plan.Points {
		if p.Example >= 0 {
			c.pointsOf[p.Example] = append(c.pointsOf[p.Example], i)
		}
	}
	for _, pair := range c.again {
		id := c.plan.Examples[pair[1]].ID
		script := Accepts
		if len(c.pointsOf[c.byID[id]]) > 0 {
			script = Refuses // it runs the points twice
		}
		c.add(place{RuleIdentity, id, NoPoint, fmt.Sprintf("examples[%d].stable_id", pair[1])}, script,
			fmt.Sprintf("the id of examples[%d] again", pair[0]), "one of its own")
	}
	next := int64(0)
	var told [Accepts + 1]bool // one wrong ordinal makes many
	for e, of := range c.pointsOf {
		last := int64(math.MinInt64)
		for _, i := range of {
			at := place{rule: RuleSchedule, example: c.plan.Examples[e].ID, point: i}
			p := c.plan.Points[i]
			if int64(p.Prefix) < last {
				c.add(at.at("prefix_token_count"), Refuses, fmt.Sprint(p.Prefix), fmt.Sprintf("%d or more, the prefix of the example's point before", last))
			}
			last = int64(p.Prefix)
			ordinal, ok := c.integer(points.Index(i), "point_ordinal", at)
			switch {
			case !ok || told[Refuses]:
			case ordinal != next:
				told[Refuses] = true
				c.add(at.at("point_ordinal"), Refuses, fmt.Sprint(ordinal), fmt.Sprintf("%d: points are run by example", next))
			case int64(i) != ordinal && !told[Accepts]:
				told[Accepts] = true
				c.add(at.at("point_ordinal"), Accepts, fmt.Sprint(ordinal), fmt.Sprintf("%d, its place in the list", i))
			}
			next++
		}
	}
}
