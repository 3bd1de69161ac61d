package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

func decodingOf(b []byte) *decoding {
	return &decoding{d: jsontext.NewDecoder(bytes.NewReader(b))}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	require.NoError(t, err)
	return s
}

func instance(t *testing.T, b []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	return v
}

func TestSchemaTakesReports(t *testing.T) {
	s := compiled(t)
	for name, r := range samples() {
		require.NoError(t, s.Validate(instance(t, written(t, r))), name)
	}
	require.NoError(t, s.Validate(instance(t, written(t, filled(t)))))
	real, err := embedded()
	require.NoError(t, err)
	require.NoError(t, s.Validate(instance(t, written(t, real))))
	empty, err := conformance.Evaluate(t.Context(), conformance.Config{})
	require.NoError(t, err)
	require.NoError(t, s.Validate(instance(t, written(t, empty))))
}

// The schema and the reader take the same shapes: every value of a report that has every
// field is in turn left out, made null, made another type, and given an unknown key.
func TestSchemaAndReaderAgree(t *testing.T) {
	s := compiled(t)
	whole := filled(t)
	ask := func(what string, doc any) (bySchema, byReader bool) {
		t.Helper()
		b, err := json.Marshal(doc)
		require.NoError(t, err)
		_, err = decodingOf(b).report()
		bySchema, byReader = s.Validate(instance(t, b)) == nil, err == nil
		assert.Equal(t, bySchema, byReader, "%s: the schema takes it: %t, the reader: %t (%v)", what, bySchema, byReader, err)
		return bySchema, byReader
	}
	var doc any
	require.NoError(t, json.Unmarshal(written(t, whole), &doc))
	taken, refused := 0, 0
	count := func(ok, _ bool) {
		if ok {
			taken++
		} else {
			refused++
		}
	}
	var visit func(path string, v any, set func(any))
	visit = func(path string, v any, set func(any)) {
		for _, other := range []any{nil, "text", "NaN", -1.0, -2.0, 0.0, 0.5, true, []any{}, map[string]any{}} {
			set(other)
			count(ask(fmt.Sprintf("%s made %#v", path, other), doc))
		}
		set(v)
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				old := v[k]
				delete(v, k)
				count(ask(path+"/"+k+" left out", doc))
				v[k] = old
				visit(path+"/"+k, old, func(x any) { v[k] = x })
			}
			v["unknown"] = 1.0
			count(ask(path+" with an unknown key", doc))
			delete(v, "unknown")
		case []any:
			visit(path+"/0", v[0], func(x any) { v[0] = x })
		}
	}
	visit("", doc, func(x any) { doc = x })
	require.Greater(t, refused, 1000)
	require.Greater(t, taken, 100)
	ok, _ := ask("the whole", doc)
	require.True(t, ok, "it was put back")
}

// Each key of the Go types is in the schema, and each of the schema's is one of theirs.
func TestSchemaHasTheKeysOfTheTypes(t *testing.T) {
	var root map[string]any
	require.NoError(t, json.Unmarshal(Schema(), &root))
	defs := root["$defs"].(map[string]any)
	used := map[string]bool{}
	resolve := func(s map[string]any) map[string]any {
		for s["$ref"] != nil {
			name := strings.TrimPrefix(s["$ref"].(string), "#/$defs/")
			used[name] = true
			s = defs[name].(map[string]any)
		}
		if of, ok := s["anyOf"].([]any); ok && len(of) == 2 {
			if second := of[1].(map[string]any); second["type"] == "null" {
				first := of[0].(map[string]any)
				if first["$ref"] != nil {
					name := strings.TrimPrefix(first["$ref"].(string), "#/$defs/")
					used[name] = true
					return defs[name].(map[string]any)
				}
				return first
			}
		}
		return s
	}
	keys := 0
	var hold func(path string, typ reflect.Type, s map[string]any)
	hold = func(path string, typ reflect.Type, s map[string]any) {
		s = resolve(s)
		switch typ.Kind() {
		case reflect.Pointer:
			hold(path, typ.Elem(), s)
		case reflect.Slice:
			require.Equal(t, "array", s["type"], path)
			hold(path+"[]", typ.Elem(), s["items"].(map[string]any))
		case reflect.Map:
			hold(path+"{}", typ.Elem(), s["additionalProperties"].(map[string]any))
		case reflect.Struct:
			require.Equal(t, false, s["additionalProperties"], path)
			properties := s["properties"].(map[string]any)
			var tags, required []string
			for _, f := range reflect.VisibleFields(typ) {
				tag, ok := f.Tag.Lookup("json")
				if !ok {
					continue
				}
				name, options, _ := strings.Cut(tag, ",")
				tags = append(tags, name)
				if options == "" {
					required = append(required, name)
				}
				p, ok := properties[name].(map[string]any)
				require.True(t, ok, "%s: the schema has no %s", path, name)
				assert.NotEmpty(t, p["description"], "%s/%s", path, name)
				hold(path+"/"+name, f.Type, p)
				keys++
			}
			require.ElementsMatch(t, tags, slices.Collect(maps.Keys(properties)), path)
			require.ElementsMatch(t, required, s["required"], path)
		}
		if want := words[typ]; want != nil {
			require.ElementsMatch(t, want, s["enum"], path)
		}
	}
	hold("", reportType, root)
	require.Greater(t, keys, 150)
	require.ElementsMatch(t, slices.Collect(maps.Keys(defs)), slices.Collect(maps.Keys(used)), "definitions that nothing uses")
	require.Equal(t, float64(conformance.SchemaVersion), root["properties"].(map[string]any)["schema_version"].(map[string]any)["const"])
	require.Equal(t, fmt.Sprintf("urn:plumbline:report:%d", conformance.SchemaVersion), root["$id"])
}

func TestSchemaIsACopy(t *testing.T) {
	clear(Schema())
	require.NotEqual(t, byte(0), Schema()[0])
	_, err := io.Copy(io.Discard, bytes.NewReader(Schema()))
	require.NoError(t, err)
}
