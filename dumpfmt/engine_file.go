package dumpfmt

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// What engine.json may declare for layers and logits.
const (
	LayersFloat32    = "f32"
	LayersInt8Scaled = "int8-scaled"
	LogitsFloat32    = "f32"
	LogitsInt32      = "i32"
)

// engineBase is the base name of the file that describes a folder's side.
const (
	engineBase = "engine"
	engineFile = engineBase + ".json"
)

// maxJSON bounds engine.json and NAME.json: a prompt of a million tokens takes
// about 10 MB.
const maxJSON = 64 << 20

// EngineFile is engine.json: what a side declares about itself. Empty fields
// were not declared.
type EngineFile struct {
	// Name is required.
	Name string
	// Layers is LayersFloat32 or LayersInt8Scaled, Logits LogitsFloat32 or
	// LogitsInt32: each is required only where such files are there.
	Layers, Logits string
	// What follows describes and is never judged. A value that is no string
	// stands here, and in Extra, in its JSON form.
	Version, DType, Weights, Activations, KVCache, Model, Probes string
	// Features are what the side claims to offer; none is no claim. The names are
	// package conformance's.
	Features []string
	// Extra holds the other keys, each with the bytes of its value.
	Extra map[string]json.RawMessage
}

// described lists the descriptive keys in the order in which they are written.
func (e *EngineFile) described() []struct {
	key string
	dst *string
} {
	return []struct {
		key string
		dst *string
	}{
		{"version", &e.Version}, {"dtype", &e.DType}, {"weights", &e.Weights},
		{"activations", &e.Activations}, {"kv_cache", &e.KVCache}, {"model", &e.Model}, {"probes", &e.Probes},
	}
}

// ReadEngineFile reads the engine.json of a dump folder. A folder without one
// is a *FormatError.
func ReadEngineFile(folder string) (EngineFile, error) {
	path := filepath.Join(folder, engineFile)
	data, err := readJSONFile(path, formatEngineFile)
	if err != nil {
		return EngineFile{}, err
	}
	return parseEngineFile(path, data)
}

func parseEngineFile(path string, data []byte) (EngineFile, error) {
	var e EngineFile
	s := newJSONScanner(path, formatEngineFile, data)
	known := map[string]*string{}
	for _, d := range e.described() {
		known[d.key] = d.dst
	}
	hasName := false
	err := s.object("the description", func(key string, _ int) (err error) {
		switch key {
		case "name":
			hasName = true
			at := s.pos
			if e.Name, err = s.str("name"); err == nil && strings.TrimSpace(e.Name) == "" {
				err = s.bad(at, "name", strconv.Quote(e.Name), "a name")
			}
			return err
		case "layers":
			e.Layers, err = s.oneOf(key, LayersFloat32, LayersInt8Scaled)
			return err
		case "logits":
			e.Logits, err = s.oneOf(key, LogitsFloat32, LogitsInt32)
			return err
		}
		if key == "features" {
			e.Features, err = s.strings(key)
			return err
		}
		dst := known[key]
		if dst != nil && s.peek() == '"' {
			*dst, err = s.str(key)
			return err
		}
		v, err := s.skip(key)
		if err != nil || dst != nil && string(v) == "null" {
			return err
		}
		if dst != nil {
			*dst = string(v)
		}
		setExtra(&e.Extra, key, v)
		return nil
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && !hasName {
		err = s.src.broken(NoOffset, `key "name"`, "nothing", "a name")
	}
	if err != nil {
		return EngineFile{}, err
	}
	return e, nil
}

// strings reads a list of strings; null is the same as no key.
func (s *jsonScanner) strings(key string) ([]string, error) {
	if s.null() {
		return nil, nil
	}
	var out []string
	err := s.array(key, func(i int) error {
		v, err := s.str(fmt.Sprintf("%s[%d]", key, i))
		out = append(out, v)
		return err
	})
	return out, err
}

func setExtra(extra *map[string]json.RawMessage, key string, v json.RawMessage) {
	if *extra == nil {
		*extra = map[string]json.RawMessage{}
	}
	(*extra)[key] = append(json.RawMessage(nil), v...)
}

// oneOf reads null, which is the same as no key, or one of two strings.
func (s *jsonScanner) oneOf(key, a, b string) (string, error) {
	if s.null() {
		return "", nil
	}
	s.space()
	at := s.pos
	v, err := s.str(key)
	if err == nil && v != a && v != b {
		err = s.bad(at, key, strconv.Quote(v), fmt.Sprintf("%q or %q", a, b))
	}
	return v, err
}

// null accepts a null.
func (s *jsonScanner) null() bool {
	if s.peek() == 'n' && strings.HasPrefix(string(s.data[s.pos:min(len(s.data), s.pos+4)]), "null") {
		s.pos += 4
		return true
	}
	return false
}

func newJSONScanner(path, format string, data []byte) *jsonScanner {
	return &jsonScanner{src: &source{file: path, format: format, size: int64(len(data))}, data: data}
}

// readJSONFile reads a whole JSON file of bounded size.
func readJSONFile(path, format string) ([]byte, error) {
	s, err := openSource(path, format)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.close() }()
	if s.size > maxJSON {
		return nil, s.broken(maxJSON, "size", fmt.Sprintf("%d bytes", s.size), fmt.Sprintf("at most %d", maxJSON))
	}
	data := make([]byte, s.size)
	return data, s.read(data, 0)
}

// encode checks what the reader would refuse.
func (e EngineFile) encode() ([]byte, error) {
	if strings.TrimSpace(e.Name) == "" {
		return nil, &UsageError{Op: "EngineFile", What: "name", Got: strconv.Quote(e.Name), Want: "a name"}
	}
	var w jsonWriter
	w.str("name", e.Name)
	for _, d := range e.described() {
		if _, raw := e.Extra[d.key]; !raw && *d.dst != "" {
			w.str(d.key, *d.dst)
		}
	}
	for _, d := range [][2]string{{"layers", e.Layers}, {"logits", e.Logits}} {
		if d[1] != "" {
			w.str(d[0], d[1])
		}
	}
	if len(e.Features) > 0 {
		w.strs("features", e.Features)
	}
	w.extra(e.Extra)
	data, err := w.finish("EngineFile")
	if err != nil {
		return nil, err
	}
	if _, err := parseEngineFile(engineFile, data); err != nil {
		return nil, &UsageError{Op: "EngineFile", What: "description", Got: err.Error(), Want: "one that its reader accepts"}
	}
	return data, nil
}
