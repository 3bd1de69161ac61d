package dumpfmt

import "testing"

// The vectors are from the FNV reference (test_fnv.c, FNV-1a 64).
func TestFingerprint(t *testing.T) {
	for text, want := range map[string]uint64{
		"":                 0xcbf29ce484222325,
		"a":                0xaf63dc4c8601ec8c,
		"foobar":           0x85944171f73967e8,
		"\xff\x00\x00\x01": 0x6961196491cc682d,
	} {
		if got := Fingerprint(text); got != want {
			t.Errorf("Fingerprint(%q): got 0x%016X, want 0x%016X", text, got, want)
		}
	}
}
