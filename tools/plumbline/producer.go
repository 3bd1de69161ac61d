package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// repository is where the source of this program is.
const repository = "https://github.com/plumbline-go/plumbline"

// producer is this program as the maker of a target: its own executable, what the
// build knows of its source and modules, and the reference's description.
func producer(info engine.Info, family string) (teacher.Implementation, error) {
	path, err := os.Executable()
	if err != nil {
		return teacher.Implementation{}, fmt.Errorf("targets: this program's file: %w", err)
	}
	self, err := fileSHA256(path)
	if err != nil {
		return teacher.Implementation{}, fmt.Errorf("targets: this program's file: %w", err)
	}
	version, commit, modules := built()
	return teacher.Implementation{
		Name:                 info.Name + "." + family,
		ProducerSHA256:       self,
		RepositoryURL:        repository,
		RepositoryCommit:     commit,
		PackageVersion:       version,
		DependencyLockSHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(modules))),
		GoVersion:            runtime.Version(),
		FrameworkVersion:     info.Version,
		Device:               "cpu",
		SourceDType:          info.DType,
		Attention:            "eager",
		Cache:                true,
	}, nil
}

func fileSHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// built is what the build says of itself: the module's version, the commit, which is
// "" where it isn't known, and a line per module: path, version, sum.
func built() (version, commit, modules string) {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", "", ""
	}
	if version = bi.Main.Version; version == "" {
		version = "unknown"
	}
	for _, s := range bi.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value + commit
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += " with changes"
		}
	}
	for _, m := range bi.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules += fmt.Sprintf("%s %s %s\n", m.Path, m.Version, m.Sum)
	}
	return version, commit, modules
}
