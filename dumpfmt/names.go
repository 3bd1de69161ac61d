package dumpfmt

import (
	"regexp"
	"strings"
)

// deviceName is what Windows takes for a device, whatever ending follows it.
// Source: "Naming Files, Paths, and Namespaces" of Microsoft's documentation.
var deviceName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?$`)

// NameUnstorable says why files of a case of this name can't be written on a system,
// GOOS in Go's words; "" where they can.
func NameUnstorable(name, goos string) string {
	if goos != "windows" {
		return ""
	}
	if i := strings.IndexAny(name, `<>:"|?*`); i >= 0 {
		return "Windows allows no " + name[i:i+1] + " in a file's name"
	}
	if deviceName.MatchString(name) {
		return "Windows takes it for a device"
	}
	return ""
}

// NameKey is the same for two cases that would share their files: on Windows and macOS
// names that differ in case only do.
func NameKey(name, goos string) string {
	if goos == "windows" || goos == "darwin" {
		return strings.ToLower(name)
	}
	return name
}
