package main

import (
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// openSession takes a sequence on, token by token.
func openSession(ref *reference.Engine, positions int) (teacher.Session, error) {
	s, err := ref.NewSession(positions)
	if err != nil {
		return nil, err
	}
	return s, nil
}
