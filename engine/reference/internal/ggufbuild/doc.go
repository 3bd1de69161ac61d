// Package ggufbuild puts GGUF files together byte by byte, for tests: sound ones,
// and ones that lie.
//
// It checks nothing, since its files may be broken on purpose, and it is for tests
// alone: package engine/reference/gguf reads such files and refuses the broken ones.
package ggufbuild
