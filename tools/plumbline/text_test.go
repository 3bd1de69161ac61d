package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorText(t *testing.T) {
	require.Equal(t, "a\n\tb\n\"\\x1b[31mc\"", errorText(errors.Join(fmt.Errorf("a\n\tb"), errors.New("\x1b[31mc"))))
}
