package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// ProtocolVersion is the version of the JSON lines that [Protocol] speaks.
const ProtocolVersion = 1

// Capabilities are what a program says of itself in the handshake.
type Capabilities struct {
	Info
	// Probes are the probes it can dump.
	Probes []Probe
	// Smoke is true when it answers the two fakes ([SmokeRight], [SmokeWrong]).
	Smoke bool
}

// wireRequest is the line that asks for one case.
type wireRequest struct {
	Case        string  `json:"case"`
	TokenIDs    []int   `json:"token_ids"`
	Text        string  `json:"text"`
	DecodeSteps int     `json:"decode_steps"`
	Stop        []int   `json:"stop"`
	Probes      []Probe `json:"probes"`
	Out         wireOut `json:"out"`
}

// wireOut is where the answer goes.
type wireOut struct {
	Dir    string `json:"dir"`
	Layers string `json:"layers"`
	Logits string `json:"logits"`
	Probes string `json:"probes"`
}

// wireLine renders v as one line.
func wireLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a shell script reads it too
	err := enc.Encode(v)
	return b.Bytes(), err
}

// wireAnswer is the line that answers one case: exactly one of OK, Unsupported
// and Error is set.
type wireAnswer struct {
	OK                 bool
	Unsupported, Error *string
	Case               *string
}

// parseAnswer reads an answer strictly: a key that it doesn't know, a repeated
// one, a value of another type and more than one verdict are refused, since a
// misspelt "unsupported" must not pass for an answer.
func parseAnswer(line []byte) (wireAnswer, error) {
	var a wireAnswer
	members, err := wireObject(line)
	if err != nil {
		return a, err
	}
	verdicts := 0
	for key, raw := range members {
		switch key {
		case "ok":
			verdicts++
			if string(raw) != "true" {
				return a, fmt.Errorf("ok: got %s, want true", raw)
			}
			a.OK = true
		case "unsupported":
			verdicts++
			a.Unsupported, err = wireString(key, raw)
		case "error":
			verdicts++
			a.Error, err = wireString(key, raw)
		case "case":
			a.Case, err = wireString(key, raw)
		default:
			err = fmt.Errorf("got the key %q, want ok, unsupported or error, and no other than case", key)
		}
		if err != nil {
			return a, err
		}
	}
	if verdicts != 1 {
		return a, fmt.Errorf("got %d of ok, unsupported and error, want exactly one", verdicts)
	}
	return a, nil
}

// errVersion is a program that speaks another version.
type errVersion struct{ got string }

func (e errVersion) Error() string {
	return fmt.Sprintf("protocol version: got %s, want %d", e.got, ProtocolVersion)
}

// parseCapabilities reads the answer to the handshake. Keys that it doesn't know
// are the program's own business, as in an engine.json.
func parseCapabilities(line []byte) (Capabilities, error) {
	var c Capabilities
	members, err := wireObject(line)
	if err != nil {
		return c, err
	}
	version, ok := members["plumbline"]
	if !ok {
		return c, errors.New(`the key "plumbline": got nothing, want the protocol version`)
	}
	if string(version) != fmt.Sprint(ProtocolVersion) {
		return c, errVersion{string(version)}
	}
	for _, f := range []struct {
		key    string
		dst    *string
		oneOf  []string
		needed bool
	}{
		{key: "name", dst: &c.Name, needed: true},
		{key: "layers", dst: &c.Layers, oneOf: []string{LayersFloat32, LayersInt8Scaled}},
		{key: "logits", dst: &c.Logits, oneOf: []string{LogitsFloat32, LogitsInt32}},
		{key: "version", dst: &c.Version}, {key: "weights", dst: &c.Weights}, {key: "activations", dst: &c.Activations},
		{key: "kv_cache", dst: &c.KVCache}, {key: "dtype", dst: &c.DType}, {key: "model", dst: &c.Model},
	} {
		raw, ok := members[f.key]
		if !ok || string(raw) == "null" {
			if f.needed {
				return c, fmt.Errorf("the key %q: got nothing, want a string", f.key)
			}
			continue
		}
		s, err := wireString(f.key, raw)
		if err != nil {
			return c, err
		}
		if f.needed && *s == "" || f.oneOf != nil && *s != f.oneOf[0] && *s != f.oneOf[1] {
			return c, fmt.Errorf("%s: got %q, want %s", f.key, *s, cmpOr(quotedOr(f.oneOf), "a name"))
		}
		*f.dst = *s
	}
	for key, dst := range map[string]any{"probes": &c.Probes, "smoke": &c.Smoke, "features": &c.Features} {
		if raw, ok := members[key]; ok {
			if err := json.Unmarshal(raw, dst); err != nil {
				return c, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return c, nil
}

func quotedOr(words []string) string {
	if len(words) != 2 {
		return ""
	}
	return fmt.Sprintf("%q or %q", words[0], words[1])
}

func wireString(key string, raw json.RawMessage) (*string, error) {
	var s *string
	if err := json.Unmarshal(raw, &s); err != nil || s == nil {
		return nil, fmt.Errorf("%s: got %.100s, want a string", key, raw)
	}
	return s, nil
}

// wireObject reads one JSON object, each key once.
func wireObject(line []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("got invalid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("got no JSON object")
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("got the key %v", t)
		}
		if _, dup := members[key]; dup {
			return nil, fmt.Errorf("got the key %q twice", key)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		members[key] = v
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("got something behind the object")
	}
	return members, nil
}
