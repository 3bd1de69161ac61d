package conformance

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// ReportEnv names a folder, by an absolute path, into which [Run] writes the JSON of its
// report as NAME.report.json, NAME being the test's. A library has no flags of its own,
// and one environment variable reaches every test of `go test ./...`. It is created if
// need be. Config.ReportJSON is written as well.
const ReportEnv = "PLUMBLINE_REPORT"

// reportPaths are the files that a run's report goes to.
func reportPaths(cfg *Config, test string) ([]string, error) {
	var out []string
	if p := cfg.ReportJSON; p != "" {
		if !filepath.IsAbs(p) {
			return nil, fmt.Errorf("conformance: Config.ReportJSON: got %s, want an absolute path: a test runs in its package's folder", dumpfmt.Printable(p))
		}
		out = append(out, p)
	}
	if dir := os.Getenv(ReportEnv); dir != "" {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("conformance: $%s: got %s, want an absolute path: a test runs in its package's folder", ReportEnv, dumpfmt.Printable(dir))
		}
		out = append(out, filepath.Join(dir, reportName(test)))
	}
	return out, nil
}

// reportName is a file's name for a test's: what not every file system takes is replaced,
// and then a hash keeps two tests' names apart.
func reportName(test string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r) {
			return r
		}
		return '_'
	}, test)
	if plain != test || len(plain) > 150 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(test))
		plain = fmt.Sprintf("%s-%016x", plain[:min(len(plain), 150)], h.Sum64())
	}
	return plain + ".report.json"
}

// clearReports removes the reports of earlier runs, so that one that breaks off leaves
// none, rather than a better one.
func clearReports(paths []string) error {
	for _, p := range paths {
		for _, file := range []string{p, EvidencePath(p)} {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("conformance: an earlier report: %w", err)
			}
		}
	}
	return nil
}

// writeReports writes the report to each path, whole or not at all. What merging needs
// of a shard comes first, so that it is there where the report is.
func writeReports(rep *Report, paths []string) error {
	var failed []error
	for _, p := range paths {
		if rep.HasEvidence() {
			if err := writeWhole(EvidencePath(p), rep.WriteEvidence); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		failed = append(failed, writeWhole(p, rep.WriteJSON))
	}
	return errors.Join(failed...)
}

func writeWhole(path string, write func(io.Writer) error) error {
	f, err := dumpfmt.Create(path, dumpfmt.WriteOptions{Overwrite: true})
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Commit()
}
