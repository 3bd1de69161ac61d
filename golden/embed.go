package golden

import (
	"embed"
	"sync"
)

//go:embed qwen2-trained qwen2-trained.manifest.json qwen2-trained.manifest.json.sha256
var recorded embed.FS

// Trained returns the goldens of the embedded trained checkpoint, recorded from
// transformers. Its inputs lie in package fixtures.
var Trained = sync.OnceValues(func() (*Set, error) { return Open(recorded, "qwen2-trained") })
