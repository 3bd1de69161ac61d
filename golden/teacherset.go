package golden

import (
	"fmt"
	"io/fs"
)

// TeacherSchema is the manifest schema of a teacher's target and evidence.
const TeacherSchema = "plumbline-golden-teacher-v1"

// TeacherManifest is the provenance of a target and its evidence.
type TeacherManifest struct {
	Schema     string       `json:"schema"`
	Set        string       `json:"set"`
	Goldens    FolderHashes `json:"goldens"`
	Checkpoint FolderHashes `json:"checkpoint"`
	// Plan is the summary that the target answers.
	Plan       PathHash   `json:"plan"`
	Reference  Reference  `json:"reference"`
	Arithmetic Arithmetic `json:"arithmetic"`
	Recorder   Recorder   `json:"recorder"`
	Passes     int        `json:"passes"`
	Precision  struct {
		Measure string `json:"measure"`
		// Points has, by ordinal, relative L2 of a target row from a float64 run;
		// Trajectories that of the worst row of a generation prompt's 32, by stable id.
		Points       []float64          `json:"points"`
		Trajectories map[string]float64 `json:"trajectories"`
	} `json:"precision"`
}

// TeacherSet is target.bin and evidence.json of one plan, computed in bfloat16.
type TeacherSet struct {
	Manifest *TeacherManifest
	fsys     fs.FS
}

const (
	targetFile   = "target.bin"
	evidenceFile = "evidence.json"
)

// OpenTeacher opens the set called name in fsys, as [Open] does a set of dumps.
func OpenTeacher(fsys fs.FS, name string) (*TeacherSet, error) {
	file := name + ".manifest.json"
	data, err := readManifest(fsys, file)
	if err != nil {
		return nil, err
	}
	var m TeacherManifest
	if err := decodeManifest(file, TeacherSchema, data, &m); err != nil {
		return nil, err
	}
	if m.Schema != TeacherSchema || m.Set != name {
		return nil, &ManifestError{file, "schema and set", m.Schema + " " + m.Set, TeacherSchema + " " + name}
	}
	p := provenance{m.Reference, m.Arithmetic, m.Recorder, m.Passes, []string{m.Plan.Path}}
	if err := p.check(file, "bfloat16", m.Goldens.Files, m.Checkpoint.Files, map[string]FileHash{m.Plan.Path: m.Plan.FileHash}); err != nil {
		return nil, err
	}
	if len(m.Precision.Points) == 0 {
		return nil, &ManifestError{file, "precision.points", "none", "one figure per target row"}
	}
	floors := append(sortedValues(m.Precision.Trajectories), m.Precision.Points...)
	for _, x := range floors {
		// A bfloat16 row that is exact would be a row of another kind.
		if !(x > 0 && x <= maxBFloat16Floor) {
			return nil, &ManifestError{file, "precision", fmt.Sprint(x), fmt.Sprintf("above 0, at most %g", maxBFloat16Floor)}
		}
	}
	goldens, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return &TeacherSet{Manifest: &m, fsys: goldens}, nil
}

func sortedValues(m map[string]float64) []float64 {
	out := make([]float64, 0, len(m))
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}

// Verify holds target, evidence, checkpoint and plan to the manifest, orphans and
// missing files included. What they say is for package golden/teacher.
func (s *TeacherSet) Verify(checkpoint fs.FS, plan []byte) []Problem {
	out := folder(s.fsys, s.Manifest.Goldens)
	for _, name := range []string{evidenceFile, targetFile} {
		if _, ok := s.Manifest.Goldens.Files[name]; !ok {
			out = append(out, Problem{s.Manifest.Goldens.Folder + "/" + name, "goldens.files", "none of this name", "its hash"})
		}
	}
	out = append(out, folder(checkpoint, s.Manifest.Checkpoint)...)
	if p := compare(s.Manifest.Plan.Path, plan, s.Manifest.Plan.FileHash); p != nil {
		out = append(out, *p)
	}
	return out
}

// Target returns the bytes of the target file, held to their hash.
func (s *TeacherSet) Target() ([]byte, error) {
	return readHeld(s.fsys, s.Manifest.Goldens, targetFile)
}

// Evidence returns the bytes of the evidence, held to their hash.
func (s *TeacherSet) Evidence() ([]byte, error) {
	return readHeld(s.fsys, s.Manifest.Goldens, evidenceFile)
}

// Replaced returns the set with its folder changed and its manifest as it was.
func (s *TeacherSet) Replaced(change func(fs.FS) (fs.FS, error)) (*TeacherSet, error) {
	fsys, err := change(s.fsys)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return &TeacherSet{Manifest: s.Manifest, fsys: fsys}, nil
}
