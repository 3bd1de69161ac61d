package golden

import "embed"

// RecordedTensors and HexSum are for the tests of package golden_test.
func RecordedTensors() embed.FS { return recordedTensors }

func HexSum(b []byte) string { return hexSum(b) }
