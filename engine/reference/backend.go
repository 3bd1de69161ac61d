package reference

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	"github.com/plumbline-go/plumbline/engine"
)

// newBackend makes a backend from its specification "name:config". Only "go" is
// in this build: gomlx's backends/default would bring XLA, cgo and a download
// of plugins with it.
func newBackend(spec string) (compute.Backend, error) {
	name, config, _ := strings.Cut(spec, ":")
	if name != gobackend.BackendName {
		return nil, &engine.UnsupportedError{What: fmt.Sprintf("backend %q", spec), Why: "this build has the backend \"go\" only"}
	}
	if strings.Contains(config, "parallelism") {
		return nil, &engine.UnsupportedError{What: fmt.Sprintf("backend %q", spec),
			Why: "a bounded worker pool of the go backend deadlocks; use GOMAXPROCS"}
	}
	b, err := gobackend.New(config)
	if err != nil {
		return nil, fmt.Errorf("reference: backend %q: %w", spec, err)
	}
	return b, nil
}
