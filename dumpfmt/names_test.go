package dumpfmt

import (
	"path/filepath"
	"testing"
)

func TestNamesThatASystemCannotStore(t *testing.T) {
	for name, bad := range map[string]bool{
		"a": false, "capital of France": false, "größe": false, "a.": false, "console": false, "com": false, "com10": false, "com.1": false,
		"CON": true, "con": true, "Nul.x": true, "com1": true, "LPT9": true, "lpt¹": true, "aux ": true, "prn .b": true,
		"a:b": true, "a?": true, `a"`: true, "a|b": true, "*": true, "<a>": true,
	} {
		if got := NameUnstorable(name, "windows") != ""; got != bad {
			t.Errorf("%q on Windows: got %v, want %v", name, got, bad)
		}
		for _, goos := range []string{"linux", "darwin"} {
			if why := NameUnstorable(name, goos); why != "" {
				t.Errorf("%q on %s: got %q", name, goos, why)
			}
		}
	}
}

func TestNamesThatDifferInCase(t *testing.T) {
	for _, tt := range []struct {
		a, b, goos string
		want       bool
	}{
		{"A", "a", "windows", true}, {"A", "a", "darwin", true}, {"A", "a", "linux", false},
		{"Ä", "ä", "windows", true}, {"a", "a", "linux", true}, {"a", "b", "windows", false},
	} {
		if got := NameKey(tt.a, tt.goos) == NameKey(tt.b, tt.goos); got != tt.want {
			t.Errorf("%q and %q on %s: got %v", tt.a, tt.b, tt.goos, got)
		}
	}
}

// A folder refuses a case whose files the system can't store or keep apart.
func TestFolderRefusesNamesOfTheSystem(t *testing.T) {
	w, err := CreateFolder(filepath.Join(t.TempDir(), "d"), EngineFile{Name: "e", Layers: LayersFloat32}, WriteOptions{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(name, goos string) error {
		w.goos = goos
		_, err := w.Case(name, CaseFile{Text: "x", TokenIDs: []int{1}})
		return err
	}
	for _, tt := range []struct {
		name, goos, want string
	}{
		{"Berlin", "windows", ""},
		{"paris", "windows", ""},
		{"berlin", "windows", `dumpfmt: FolderWriter.Case: name: got "berlin" beside "Berlin", want names that differ in more than case: this system takes them for one`},
		{"rome", "linux", ""},
		{"Rome", "linux", ""},
		{"NUL", "windows", `dumpfmt: FolderWriter.Case: name: got "NUL", want one that this system stores: Windows takes it for a device`},
		{"a:b", "windows", `dumpfmt: FolderWriter.Case: name: got "a:b", want one that this system stores: Windows allows no : in a file's name`},
		{"NUL", "linux", ""},
	} {
		got := ""
		if err := begin(tt.name, tt.goos); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s on %s:\ngot  %s\nwant %s", tt.name, tt.goos, got, tt.want)
		}
	}
	// The same name once more is the caller's affair.
	if err := begin("paris", "windows"); err != nil {
		t.Errorf("paris again: %v", err)
	}
}
