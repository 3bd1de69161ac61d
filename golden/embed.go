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

//go:embed qwen3_5-seeded qwen3_5-seeded.manifest.json qwen3_5-seeded.manifest.json.sha256
//go:embed qwen3_5-bfloat16 qwen3_5-bfloat16.manifest.json qwen3_5-bfloat16.manifest.json.sha256
//go:embed qwen3_5-teacher qwen3_5-teacher.manifest.json qwen3_5-teacher.manifest.json.sha256
var recordedHybrids embed.FS

// Qwen35 returns the tensors of the embedded Qwen3.5 checkpoint, recorded from
// transformers in float32. Its inputs lie in package fixtures.
var Qwen35 = sync.OnceValues(func() (*TensorSet, error) { return OpenTensors(recordedHybrids, "qwen3_5-seeded") })

// Qwen35BFloat16 returns those that transformers computes in bfloat16: the
// stream, what the mixers put out, and logits, as float32 copies.
var Qwen35BFloat16 = sync.OnceValues(func() (*TensorSet, error) { return OpenBFloat16Tensors(recordedHybrids, "qwen3_5-bfloat16") })

// Teacher returns the target and evidence of the embedded Qwen3.5 checkpoint's
// teacher plan, recorded from transformers in bfloat16. The plan lies in package
// fixtures.
var Teacher = sync.OnceValues(func() (*TeacherSet, error) { return OpenTeacher(recordedHybrids, "qwen3_5-teacher") })

//go:embed deepseek2-seeded deepseek2-seeded.manifest.json deepseek2-seeded.manifest.json.sha256
//go:embed deepseek2-bfloat16 deepseek2-bfloat16.manifest.json deepseek2-bfloat16.manifest.json.sha256
//go:embed deepseek2-grouped deepseek2-grouped.manifest.json deepseek2-grouped.manifest.json.sha256
//go:embed deepseek-gates deepseek-gates.manifest.json deepseek-gates.manifest.json.sha256
var recordedRoutes embed.FS

// DeepSeek2 returns the tensors and routes of the embedded DeepSeek-V2
// checkpoint, recorded from transformers in float32, with the softmax scale of
// the model's official file. Its inputs lie in package fixtures.
var DeepSeek2 = sync.OnceValues(func() (*TensorSet, error) { return OpenTensors(recordedRoutes, "deepseek2-seeded") })

// DeepSeek2BFloat16 returns those computed in bfloat16, whose router works in
// float32, as float32 copies.
var DeepSeek2BFloat16 = sync.OnceValues(func() (*TensorSet, error) { return OpenBFloat16Tensors(recordedRoutes, "deepseek2-bfloat16") })

// DeepSeek2Grouped returns those of the checkpoint with a low rank for queries
// and groups of experts, in float32.
var DeepSeek2Grouped = sync.OnceValues(func() (*TensorSet, error) { return OpenTensors(recordedRoutes, "deepseek2-grouped") })

// DeepSeekGates returns what the gates alone make of rows, in float32: cases
// v2_groups and v3, with tensors hidden, router_logits, route_ids and
// route_weights. A case has no tokens; its positions number the rows.
var DeepSeekGates = sync.OnceValues(func() (*TensorSet, error) { return OpenTensors(recordedRoutes, "deepseek-gates") })

// Trained returns the goldens of the embedded trained checkpoint, recorded from
// transformers. Its inputs lie in package fixtures.
var Trained = sync.OnceValues(func() (*Set, error) { return Open(recorded, "qwen2-trained") })
