package report

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline-go/plumbline/conformance"
)

// MaxBytes is the size up to which a report is read.
const MaxBytes = 1 << 30

// Read reads the JSON of a report, as [conformance.Report.WriteJSON] writes it, to the
// end of r. It is strict: [Schema] says what is taken, and more is held than a schema
// can say. What is refused is a *[VersionError] (another schema version), a
// *[FormatError] (broken, cut off, of another shape, larger than MaxBytes) or a
// *[ContradictionError] (a verdict that the report's own checks contradict). Reading
// from a file with a name, errors have that name.
func Read(r io.Reader) (*conformance.Report, error) {
	name := ""
	if f, ok := r.(interface{ Name() string }); ok {
		name = f.Name()
	}
	return read(r, name, MaxBytes)
}

// ReadFile is Read on a file.
func ReadFile(path string) (*conformance.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	defer f.Close()
	return read(f, path, MaxBytes)
}

func read(r io.Reader, name string, most int64) (*conformance.Report, error) {
	d := &decoding{d: jsontext.NewDecoder(&capped{r: r, left: most, most: most}), file: name}
	rep, err := d.report()
	if err != nil {
		return nil, err
	}
	if what := contradiction(rep); what != "" {
		return nil, &ContradictionError{File: name, What: what}
	}
	return rep, nil
}

// capped is a reader that refuses what is larger than most, in bytes.
type capped struct {
	r          io.Reader
	left, most int64
}

var errTooLarge = errors.New("too large")

func (c *capped) Read(p []byte) (int, error) {
	if c.left == 0 {
		if n, err := c.r.Read(p[:min(1, len(p))]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("%w: got more than %d bytes", errTooLarge, c.most)
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
