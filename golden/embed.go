package golden

import (
	"embed"
	"sync"
)

//go:embed qwen2-trained qwen2-trained.manifest.json qwen2-trained.manifest.json.sha256
var recorded embed.FS

//go:embed gemma4-window gemma4-window.manifest.json gemma4-window.manifest.json.sha256
var recordedTensors embed.FS

// Gemma4 returns the attention tensors of the embedded Gemma 4 checkpoint,
// recorded from transformers. Its inputs lie in package fixtures.
var Gemma4 = sync.OnceValues(func() (*TensorSet, error) { return OpenTensors(recordedTensors, "gemma4-window") })

// Trained returns the goldens of the embedded trained checkpoint, recorded from
// transformers. Its inputs lie in package fixtures.
var Trained = sync.OnceValues(func() (*Set, error) { return Open(recorded, "qwen2-trained") })
