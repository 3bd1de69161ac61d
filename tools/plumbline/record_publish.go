package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
)

// newRecording is a golden folder with a manifest beside it, which appear together.
type newRecording struct {
	folder         *newFolder
	base           string
	manifest, pin  string
	overwrite      bool
	before         map[string][]byte // what the two files held, where they were there
	manifestsAlone []string          // what was written before the folder was there
}

// startRecording finds out whether the folder and its manifest may be written.
func (a *app) startRecording(path string) (*newRecording, error) {
	folder, err := startFolder(path, a.overwrite)
	if err != nil {
		return nil, err
	}
	r := &newRecording{folder: folder, base: filepath.Base(folder.final), overwrite: a.overwrite, before: map[string][]byte{}}
	r.manifest = folder.final + ".manifest.json"
	r.pin = r.manifest + ".sha256"
	for _, file := range []string{r.manifest, r.pin} {
		data, err := os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, errors.Join(err, folder.discard())
		case !a.overwrite:
			return nil, errors.Join(fmt.Errorf("%w: --overwrite replaces it", &fs.PathError{Op: "create", Path: file, Err: fs.ErrExist}), folder.discard())
		default:
			r.before[file] = data
		}
	}
	return r, nil
}

// publish writes the manifest and gives the folder its name. The manifest is first:
// killed in between, it leaves a manifest without its folder, which is refused, and
// never a folder that looks like one without a manifest.
func (r *newRecording) publish(m *golden.Recording) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return err
	}
	pin := fmt.Sprintf("%x  %s\n", sha256.Sum256(b.Bytes()), filepath.Base(r.manifest)) // the form of sha256sum
	for _, f := range []struct {
		path string
		data []byte
	}{{r.manifest, b.Bytes()}, {r.pin, []byte(pin)}} {
		if err := dumpfmt.WriteFile(f.path, f.data, dumpfmt.WriteOptions{Overwrite: r.overwrite}); err != nil {
			return errors.Join(err, r.takeBack())
		}
		r.manifestsAlone = append(r.manifestsAlone, f.path)
	}
	if err := r.folder.publish(); err != nil {
		return errors.Join(err, r.takeBack())
	}
	r.manifestsAlone = nil
	return nil
}

// takeBack makes the two files what they were.
func (r *newRecording) takeBack() error {
	var errs []error
	for _, path := range r.manifestsAlone {
		if data, was := r.before[path]; was {
			errs = append(errs, dumpfmt.WriteFile(path, data, dumpfmt.WriteOptions{Overwrite: true}))
		} else {
			errs = append(errs, os.Remove(path))
		}
	}
	r.manifestsAlone = nil
	return errors.Join(errs...)
}

// discard removes what was built. After publish it does nothing.
func (r *newRecording) discard() error { return r.folder.discard() }

// hashCheckpoint hashes the files that the model lies in.
func hashCheckpoint(ckpt *reference.Checkpoint) (golden.FolderHashes, error) {
	fsys, name := checkpointFS(ckpt.WeightFiles())
	files, err := golden.CheckpointFiles(fsys)
	if err != nil {
		return golden.FolderHashes{}, err
	}
	return golden.HashFiles(fsys, name, files)
}
