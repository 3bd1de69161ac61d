package conformance

const baselineID, repeatID = "Baseline", "Repeat"
