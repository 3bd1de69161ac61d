// Package progress tells people how far a long run is, on standard error.
//
// On a terminal it draws a bar, but only once the work has lasted a second:
// short work stays silent. Anywhere else (a pipe, a CI log) it writes plain
// lines, at most one a second, so that a log stays readable. Quiet silences both.
//
// Progress is never a result: nothing is written to standard output, and a
// failure to write is ignored.
package progress
