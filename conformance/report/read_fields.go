package report

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/plumbline-go/plumbline/conformance"
)

// field is one key of an object.
type field struct {
	name  string
	index []int
	// required is false for what is left out when empty; only what isn't may be null.
	required, nullable bool
	least              int64 // of a whole number
}

// anyInt is the least of numbers that have no bound.
const anyInt = math.MinInt64

// least are the bounds of whole numbers: what counts, and what points into a list.
var least = map[reflect.Type]map[string]int64{
	reflect.TypeFor[conformance.Report]():       {"first_bad_row": 0, "executed": 0},
	reflect.TypeFor[conformance.CaseVerdict]():  {"first_bad_row": 0},
	reflect.TypeFor[conformance.At]():           {"row": -1, "channel": -1},
	reflect.TypeFor[conformance.LogitStep]():    {"step": 0},
	reflect.TypeFor[conformance.DepthRow]():     {"row": 0},
	reflect.TypeFor[conformance.GoldenInfo]():   {"cases": 0},
	reflect.TypeFor[conformance.DepthBounds]():  {"median_cases": 1},
	reflect.TypeFor[conformance.RouteMargins](): {"match": 0, "tie": 0, "flip": 0, "unjudged": 0},
	reflect.TypeFor[conformance.WaiverUse]():    {"used": 0},
	reflect.TypeFor[conformance.BaselineInfo](): {"compared": 0},
	reflect.TypeFor[conformance.ShardInfo]():    {"index": 0, "total": 1, "all_cases": 0, "cases": 0},
	reflect.TypeFor[conformance.RepeatInfo]():   {"cases": 0, "figures": 0},
	reflect.TypeFor[conformance.FigureNoise]():  {"cases": 0},
	reflect.TypeFor[conformance.RatchetStep]():  {"improved": 0, "kept": 0, "loosened": 0},
}

type fields struct {
	list   []field
	byName map[string]int
}

var known sync.Map // reflect.Type to fields

// fieldsOf are the keys of a struct's JSON, those of embedded structs included.
func fieldsOf(t reflect.Type) fields {
	if f, ok := known.Load(t); ok {
		return f.(fields)
	}
	out := fields{byName: map[string]int{}}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" || name == "" {
			continue
		}
		required := !strings.Contains(options, "omitempty")
		out.byName[name] = len(out.list)
		bound, ok := least[t][name]
		if !ok {
			bound = anyInt
		}
		out.list = append(out.list, field{name: name, index: f.Index, required: required,
			nullable: required && f.Type.Kind() == reflect.Pointer, least: bound})
	}
	known.Store(t, out)
	return out
}

// words are the strings that a type takes.
var words = map[reflect.Type][]string{
	reflect.TypeFor[conformance.Conclusion](): texts(conformance.Conforms, conformance.Partial, conformance.Fails, conformance.NothingJudged),
	reflect.TypeFor[conformance.Status]():     texts(conformance.Pass, conformance.Fail, conformance.Error, conformance.Unsupported, conformance.Skip),
	reflect.TypeFor[conformance.Level]():      texts(conformance.Core, conformance.Extended, conformance.Provisional),
	reflect.TypeFor[conformance.Side]():       texts(conformance.SideCandidate, conformance.SideReference, conformance.SideSuite),
	reflect.TypeFor[conformance.Margin]():     texts(conformance.Match, conformance.TieFlip, conformance.Drift, conformance.Wrong),
	reflect.TypeFor[conformance.Feature]():    texts(conformance.Features()...),
	reflect.TypeFor[conformance.Kind](): texts(conformance.KindLayer, conformance.KindAllLayers, conformance.KindInput, conformance.KindDump,
		conformance.KindHead, conformance.KindFormat, conformance.KindProvenance),
}

var allowed = func() map[reflect.Type]map[string]bool {
	out := map[reflect.Type]map[string]bool{}
	for t, list := range words {
		out[t] = map[string]bool{}
		for _, w := range list {
			out[t][w] = true
		}
	}
	return out
}()

func texts[S ~string](list ...S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func quoted(t reflect.Type) []string {
	out := make([]string, len(words[t]))
	for i, w := range words[t] {
		out[i] = strconv.Quote(w)
	}
	return out
}
