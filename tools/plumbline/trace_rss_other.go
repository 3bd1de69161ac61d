//go:build !unix

package main

// maxRSSKiB isn't known here.
func maxRSSKiB() int64 { return 0 }
