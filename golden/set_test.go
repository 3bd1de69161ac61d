package golden_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
)

// toySet is a complete golden set of one case, made by hand.
type toySet struct {
	files      fstest.MapFS // qwen/…, qwen.manifest.json, its hash
	checkpoint fstest.MapFS
	prompts    []byte
	manifest   map[string]any
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func hash(b []byte) map[string]any { return map[string]any{"bytes": len(b), "sha256": sum(b)} }

func newToySet(t *testing.T) *toySet {
	t.Helper()
	layers := make([]byte, 32)
	binary.LittleEndian.PutUint64(layers, 2)
	binary.LittleEndian.PutUint64(layers[8:], 2)
	binary.LittleEndian.PutUint64(layers[16:], dumpfmt.Fingerprint("hello"))
	binary.LittleEndian.PutUint64(layers[24:], 1)
	for _, v := range []float32{1, 2, 3, 4} {
		layers = binary.LittleEndian.AppendUint32(layers, math.Float32bits(v))
	}
	dumps := map[string][]byte{
		"engine.json":      []byte(`{"name": "transformers", "version": "5.13.1", "dtype": "float32", "layers": "f32", "logits": "f32"}`),
		"hello.json":       []byte(`{"text": "hello", "token_ids": [1]}`),
		"hello.layers.bin": layers,
		"hello.logits.bin": make([]byte, 16),
	}
	prompts := []byte(`[{"name": "hello", "text": "hello", "token_ids": [1], "why": "w"}]`)
	s := &toySet{
		files:      fstest.MapFS{},
		checkpoint: fstest.MapFS{"config.json": {Data: []byte("{}")}, "prompts.json": {Data: prompts}},
		prompts:    prompts,
	}
	goldens := map[string]any{}
	for name, data := range dumps {
		s.files["qwen/"+name] = &fstest.MapFile{Data: data}
		goldens[name] = hash(data)
	}
	s.manifest = map[string]any{
		"schema": golden.ManifestSchema, "set": "qwen",
		"goldens":    map[string]any{"folder": "golden/qwen", "files": goldens},
		"checkpoint": map[string]any{"folder": "fixtures/qwen", "files": map[string]any{"config.json": hash([]byte("{}"))}},
		"prompts": map[string]any{
			"source":  map[string]any{"path": "tools/prompts.json", "bytes": 1, "sha256": sum(nil)},
			"written": map[string]any{"path": "fixtures/qwen/prompts.json", "bytes": len(prompts), "sha256": sum(prompts)},
		},
		"cases": []string{"hello"},
		"reference": map[string]any{"library": "transformers", "versions": map[string]string{"transformers": "5.13.1"},
			"modules": map[string]string{"transformers/models/qwen2/modeling_qwen2.py": sum([]byte("x"))}},
		"arithmetic": map[string]any{"dtype": "float32", "device": "cpu"},
		"recorder":   map[string]any{"command": "record", "sources": map[string]string{}},
		"passes":     2, "max_new": 8, "stop": []int{0},
		"precision": map[string]any{"measure": "m", "cases": map[string]any{"hello": map[string]any{"layers": []float64{0, 1e-7}, "logits": []float64{}}}},
	}
	s.seal(t)
	return s
}

// seal writes the manifest and its hash.
func (s *toySet) seal(t *testing.T) {
	t.Helper()
	b, err := json.MarshalIndent(s.manifest, "", " ")
	require.NoError(t, err)
	s.files["qwen.manifest.json"] = &fstest.MapFile{Data: append(b, '\n')}
	s.files["qwen.manifest.json.sha256"] = &fstest.MapFile{Data: []byte(sum(append(b, '\n')) + "  qwen.manifest.json\n")}
}

func (s *toySet) verify(t *testing.T) ([]golden.Problem, error) {
	t.Helper()
	set, err := golden.Open(s.files, "qwen")
	if err != nil {
		return nil, err
	}
	return set.Verify(golden.Inputs{Checkpoint: s.checkpoint, Prompts: s.prompts}), nil
}

func TestVerifyACompleteSet(t *testing.T) {
	s := newToySet(t)
	problems, err := s.verify(t)
	require.NoError(t, err)
	assert.Empty(t, problems)
	set, err := golden.Open(s.files, "qwen")
	require.NoError(t, err)
	assert.True(t, set.Has("hello"))
	assert.False(t, set.Has("other"))
	assert.Equal(t, []float64{0, 1e-7}, set.LayerFloor("hello"))
	d, err := set.Layers("hello")
	require.NoError(t, err)
	row := make([]float64, 2)
	require.NoError(t, d.Row64(1, row))
	assert.Equal(t, []float64{3, 4}, row)
}

func TestVerifyNamesTheFile(t *testing.T) {
	flip := func(f fstest.MapFS, name string, bit int) {
		data := append([]byte(nil), f[name].Data...)
		data[bit/8] ^= 1 << (bit % 8)
		f[name] = &fstest.MapFile{Data: data}
	}
	for _, tc := range []struct {
		name   string
		change func(s *toySet)
		file   string
		what   string
	}{
		{"a golden's bit", func(s *toySet) { flip(s.files, "qwen/hello.layers.bin", 300) }, "golden/qwen/hello.layers.bin", "sha256"},
		{"a case file's bit", func(s *toySet) { flip(s.files, "qwen/hello.json", 40) }, "golden/qwen/hello.json", "sha256"},
		{"a shorter golden", func(s *toySet) { s.files["qwen/hello.logits.bin"].Data = make([]byte, 15) }, "golden/qwen/hello.logits.bin", "length"},
		{"a golden gone", func(s *toySet) { delete(s.files, "qwen/hello.logits.bin") }, "golden/qwen/hello.logits.bin", "file"},
		{"an orphan", func(s *toySet) { s.files["qwen/old.layers.bin"] = &fstest.MapFile{Data: []byte("x")} }, "golden/qwen/old.layers.bin", "orphan"},
		{"a checkpoint's bit", func(s *toySet) { flip(s.checkpoint, "config.json", 3) }, "fixtures/qwen/config.json", "sha256"},
		{"a file beside the checkpoint", func(s *toySet) { s.checkpoint["extra.bin"] = &fstest.MapFile{} }, "fixtures/qwen/extra.bin", "orphan"},
		{"a prompt's bit", func(s *toySet) { s.prompts = bytes.Replace(s.prompts, []byte(`"w"`), []byte(`"v"`), 1) }, "fixtures/qwen/prompts.json", "sha256"},
		{"no checkpoint", func(s *toySet) { s.checkpoint = nil }, "fixtures/qwen", "checkpoint"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newToySet(t)
			tc.change(s)
			set, err := golden.Open(s.files, "qwen")
			require.NoError(t, err)
			in := golden.Inputs{Prompts: s.prompts}
			if s.checkpoint != nil {
				in.Checkpoint = s.checkpoint
			}
			problems := set.Verify(in)
			require.Len(t, problems, 1)
			assert.Equal(t, tc.file, problems[0].File)
			assert.Equal(t, tc.what, problems[0].What)
			assert.Contains(t, problems[0].Error(), tc.file)
		})
	}
}

func TestOpenRefusesAManifest(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, s *toySet)
		says   string
	}{
		{"one bit", func(_ *testing.T, s *toySet) { s.files["qwen.manifest.json"].Data[50] ^= 1 }, "sha256"},
		{"its hash's bit", func(_ *testing.T, s *toySet) { s.files["qwen.manifest.json.sha256"].Data[0] ^= 1 }, "sha256"},
		{"the engine under test as reference", func(t *testing.T, s *toySet) {
			s.manifest["reference"].(map[string]any)["library"] = "my engine"
			s.seal(t)
		}, "reference.library: got my engine, want transformers"},
		{"another schema", func(t *testing.T, s *toySet) { s.manifest["schema"] = "v0"; s.seal(t) }, "schema: got v0"},
		{"an unknown key", func(t *testing.T, s *toySet) { s.manifest["note"] = 1; s.seal(t) }, "note"},
		{"recorded once", func(t *testing.T, s *toySet) { s.manifest["passes"] = 1; s.seal(t) }, "passes"},
		{"no case", func(t *testing.T, s *toySet) { s.manifest["cases"] = []string{}; s.seal(t) }, "cases"},
		{"another set", func(t *testing.T, s *toySet) { s.manifest["set"] = "llama"; s.seal(t) }, "set: got llama, want qwen"},
		{"a hash that isn't one", func(t *testing.T, s *toySet) {
			s.manifest["goldens"].(map[string]any)["files"].(map[string]any)["hello.json"] = map[string]any{"bytes": 1, "sha256": "abc"}
			s.seal(t)
		}, "hash of hello.json"},
		{"a floor that allows anything", func(t *testing.T, s *toySet) {
			s.manifest["precision"].(map[string]any)["cases"].(map[string]any)["hello"] = map[string]any{"layers": []float64{0, 1e-3}, "logits": []float64{}}
			s.seal(t)
		}, "precision of case hello"},
		{"another arithmetic", func(t *testing.T, s *toySet) {
			s.manifest["arithmetic"] = map[string]any{"dtype": "bfloat16", "device": "cuda"}
			s.seal(t)
		}, "bfloat16 on cuda"},
		{"no source modules", func(t *testing.T, s *toySet) {
			s.manifest["reference"].(map[string]any)["modules"] = map[string]string{}
			s.seal(t)
		}, "reference.modules"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newToySet(t)
			tc.change(t, s)
			_, err := s.verify(t)
			require.Error(t, err)
			assert.Contains(t, err.Error(), tc.says)
			assert.True(t, strings.Contains(err.Error(), "qwen.manifest.json"), err.Error())
		})
	}
	s := newToySet(t)
	delete(s.files, "qwen.manifest.json")
	_, err := s.verify(t)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestVerifyCasesWithoutFilesOrFloor(t *testing.T) {
	s := newToySet(t)
	s.manifest["cases"] = []string{"hello", "other"}
	s.seal(t)
	problems, err := s.verify(t)
	require.NoError(t, err)
	assert.Len(t, problems, 4, "three files and a floor: %v", problems)
}

// TestVerifySeesWhatHashesDoNot: files that were changed together with their
// hashes still have to agree with each other.
func TestVerifySeesWhatHashesDoNot(t *testing.T) {
	logits := func(values ...float32) []byte {
		b := make([]byte, 16)
		binary.LittleEndian.PutUint64(b, 1)
		binary.LittleEndian.PutUint64(b[8:], uint64(len(values)))
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	const withToken = `{"text": "hello", "token_ids": [1], "output_ids": [2]}`
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		says  string // "" none
	}{
		{"one token, its logit the largest", map[string][]byte{"hello.json": []byte(withToken), "hello.logits.bin": logits(0, 1, 3, 3)}, ""},
		{"another prompt's ids", map[string][]byte{"hello.json": []byte(`{"text": "hello", "token_ids": [7]}`)}, "another prompt"},
		{"another prompt's text", map[string][]byte{"hello.json": []byte(`{"text": "adieu", "token_ids": [1]}`)}, "another prompt"},
		{"an invented token", map[string][]byte{"hello.json": []byte(withToken), "hello.logits.bin": logits(5, 1, 3, 3)}, "its largest logit at 0"},
		{"the last of two equal logits", map[string][]byte{"hello.json": []byte(withToken), "hello.logits.bin": logits(0, 3, 3, 1)}, "its largest logit at 1"},
		{"a token without a row", map[string][]byte{"hello.json": []byte(withToken)}, "one per output token"},
		{"another engine", map[string][]byte{"engine.json": []byte(`{"name": "plumbline", "version": "5.13.1", "dtype": "float32"}`)}, "engine: got plumbline"},
		{"another version", map[string][]byte{"engine.json": []byte(`{"name": "transformers", "version": "4.0.0", "dtype": "float32"}`)}, "4.0.0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newToySet(t)
			for name, data := range tc.files {
				s.files["qwen/"+name] = &fstest.MapFile{Data: data}
				s.manifest["goldens"].(map[string]any)["files"].(map[string]any)[name] = hash(data)
			}
			s.seal(t)
			problems, err := s.verify(t)
			require.NoError(t, err)
			if tc.says == "" {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			assert.Contains(t, problems[0].Error(), tc.says)
		})
	}
}

func TestLayersOfAGoldenWithAFlippedBit(t *testing.T) {
	s := newToySet(t)
	s.files["qwen/hello.layers.bin"].Data[40] ^= 1
	set, err := golden.Open(s.files, "qwen")
	require.NoError(t, err)
	_, err = set.Layers("hello")
	require.Error(t, err)
	assert.Contains(t, err.Error(), "qwen/hello.layers.bin")
	_, err = set.Layers("nobody")
	require.Error(t, err)
}
