// Package routes gathers the figures of a route report, gate by gate, while a model
// runs: how close each choice of experts was, and where another arithmetic chooses
// others. What it holds doesn't grow with the number of rows.
//
// Two runs are compared on the same inputs: the judged one and a reference that is
// closer to the model, with the judged run's experts forced on it, so that no choice
// that differs has any others behind it. A choice that differs is a TIE within the
// band and a FLIP above it, on the reference's scores. The band is twice what the
// scores of the last expert chosen and of the next one are off by in the judged run, at
// the 99th percentile of the rows that a gate gets at once; it is never below a step
// of the type that routes are scored in. So a FLIP is a row that the arithmetic moved
// further than it moves others, or a fault; a fault that moves most rows of a gate
// widens the band and shows there.
package routes
