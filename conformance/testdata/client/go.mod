module example.com/tinyllm

go 1.26.8

require (
	github.com/plumbline-go/plumbline v0.0.0
	github.com/sebdah/goldie/v2 v2.8.0
)

require (
	github.com/daulet/tokenizers v1.27.0 // indirect
	github.com/dlclark/regexp2/v2 v2.13.0 // indirect
	github.com/edsrzf/mmap-go v1.2.0 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/gofrs/flock v0.13.0 // indirect
	github.com/gomlx/compute v0.1.6 // indirect
	github.com/gomlx/go-huggingface v0.4.3 // indirect
	github.com/gomlx/gomlx v0.28.8 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mitsuhiko/minijinja/minijinja-go/v2 v2.24.0 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/pmezard/go-difflib v1.0.1-0.20181226105442-5d4384ee4fb2 // indirect
	github.com/sergi/go-diff v1.0.0 // indirect
	golang.org/x/exp v0.0.0-20260410095643-746e56fc9e2f // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
)

replace github.com/plumbline-go/plumbline => ../../..
