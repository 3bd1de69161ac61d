package dumpfmt

import "bytes"

// bomText is what an error says of a byte order mark.
const bomText = "a byte order mark"

// HasBOM reports whether text begins with UTF-8's byte order mark, which some editors
// write and JSON doesn't allow. Nobody sees it, so readers name it.
func HasBOM(data []byte) bool { return bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) }
