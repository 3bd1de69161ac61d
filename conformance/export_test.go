package conformance

// WithMemory lets tests of the suite run each clean prompt once.
var WithMemory = withMemory
