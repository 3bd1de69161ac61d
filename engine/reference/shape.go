package reference

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// checkShape compares a tensor's shape with the one that the config implies.
func checkShape(file, name string, got, want []int) error {
	if slices.Equal(got, want) {
		return nil
	}
	return &engine.ConfigError{File: file, What: "tensor " + name,
		Got: fmt.Sprintf("shape %v", got), Want: fmt.Sprintf("shape %v", want)}
}
