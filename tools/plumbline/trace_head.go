package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/canonical"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// head is what the document says of the model, the tokenizer and the sources.
func (t *tracing) head(ctx context.Context) (trace.Head, error) {
	h := trace.Head{CapturedAt: t.flags.capturedAt, Sources: trace.NewSourceContract(t.selection), Tokenizer: t.tokenizerContract()}
	if h.CapturedAt == "" {
		h.CapturedAt = t.started.UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	var err error
	h.Model, err = t.model(ctx)
	return h, err
}

// tokenizerContract describes the tokenizer. Without one the vocabulary is the
// model's, and no id is known to be special.
func (t *tracing) tokenizerContract() trace.TokenizerContract {
	c := trace.TokenizerContract{Conditions: t.plan.Conditions, Pad: &t.pad, SpecialIDs: []int{}}
	if t.words == nil {
		c.Length = t.ckpt.Arch().Vocab
		c.VocabSize = c.Length
		return c
	}
	c.VocabSize, c.Length = t.words.tok.Sizes()
	c.SpecialIDs = t.words.tok.NamedIDs()
	return c
}

// model names the checkpoint, and hashes its files.
func (t *tracing) model(ctx context.Context) (trace.Model, error) {
	path, err := reference.Resolve(t.modelPath())
	if err != nil {
		return trace.Model{}, err
	}
	files, err := checkpointFiles(path, t.ckpt)
	if err != nil {
		return trace.Model{}, err
	}
	m := trace.Model{}
	task := t.progress().Start("hash", len(files))
	defer task.End()
	identity := sha256.New()
	for _, file := range files {
		f, err := identify(ctx, file)
		if err != nil {
			return trace.Model{}, fmt.Errorf("--model: %w", err)
		}
		m.Files = append(m.Files, f)
		fmt.Fprintf(identity, "%s %s\n", f.SHA256, f.Name)
		task.StepBytes(func() string { return f.Name }, f.Bytes)
	}
	m.CheckpointIdentity = "sha256 of its files' hashes and names: " + hex.EncodeToString(identity.Sum(nil))
	m.Architecture = architecture(path, t.ckpt.Arch().Family)
	var cached bool
	m.Repo, m.Revision, cached = hubRepository(path)
	m.RevisionContract = canonical.Object(
		canonical.Member{Key: "stand_in", Value: canonical.Bool(!cached)}, // no download that anybody vouches for
		canonical.Member{Key: "revision", Value: canonical.String(m.Revision)},
		canonical.Member{Key: "files", Value: canonical.Int(int64(len(m.Files)))},
	)
	return m, nil
}

// checkpointFiles are the files of a checkpoint that a trace depends on, in the
// order of the script's list.
func checkpointFiles(path string, ckpt *reference.Checkpoint) ([]string, error) {
	weights := ckpt.WeightFiles()
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return weights, err
	}
	var files []string
	add := func(name string) error {
		file := filepath.Join(path, name)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	}
	err := errors.Join(add("config.json"), add("generation_config.json"))
	if len(weights) != 1 || filepath.Base(weights[0]) != "model.safetensors" {
		err = errors.Join(err, add("model.safetensors.index.json"))
	}
	files = append(files, weights...)
	return files, errors.Join(err, add("tokenizer.json"), add("tokenizer_config.json"))
}

// identify hashes a file.
func identify(ctx context.Context, path string) (trace.FileIdentity, error) {
	f, err := os.Open(path)
	if err != nil {
		return trace.FileIdentity{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, stoppable{ctx, f})
	return trace.FileIdentity{Name: filepath.Base(path), Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// stoppable is a reader that ends with a context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// architecture is the class that the config names, else the family.
func architecture(path, family string) string {
	var c struct{ Architectures []string }
	data, err := os.ReadFile(filepath.Join(path, "config.json"))
	if err == nil && json.Unmarshal(data, &c) == nil && len(c.Architectures) > 0 {
		return c.Architectures[0]
	}
	return family
}

// hubRepository is the repository and the revision that a snapshot in the hub's cache
// lies under; else the folder's name.
func hubRepository(path string) (repo, revision string, cached bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	parts := strings.Split(filepath.ToSlash(abs), "/")
	if n := len(parts); n >= 3 && parts[n-2] == "snapshots" {
		if name, ok := strings.CutPrefix(parts[n-3], "models--"); ok {
			return strings.ReplaceAll(name, "--", "/"), parts[n-1], true
		}
	}
	return filepath.Base(abs), "none: not in a cache of the hub", false
}

// complete adds what is known when the trace is done.
func (t *tracing) complete(h *trace.Head, load float64) {
	info := t.engine.Describe()
	h.Model.DType = info.DType
	device := "cpu"
	if spec := t.backendSpec(); spec != "go" && !strings.HasPrefix(spec, "go:") {
		device = spec
	}
	h.Execution = trace.Execution{
		Platform: info.Name + ", " + info.Version + ", activations " + info.Activations, InputDevice: device, LoadSeconds: load, MaxRSSKiB: maxRSSKiB(),
		DeviceMap: canonical.Object(),
	}
	h.ClaimBoundary = trace.ClaimBoundary(t.claims(info.DType)...)
}

func (t *tracing) backendSpec() string {
	if t.backend != "" {
		return t.backend
	}
	return reference.DefaultBackend
}

// claims are what is to be known of this run's arithmetic.
func (t *tracing) claims(dtype string) []string {
	out := []string{fmt.Sprintf("The arithmetic was %s. Another run rounds elsewhere, so hashes of hidden rows may differ where no figure does by more than rounding.", dtype)}
	if t.flags.scale == scaleTransformers {
		out = append(out, "Attention scores were scaled as transformers' classes have it, without mscale²; the model's own file has it.")
	}
	return out
}

// seconds since a time.
func seconds(since time.Time) float64 { return time.Since(since).Seconds() }
