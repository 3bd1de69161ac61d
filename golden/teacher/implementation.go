package teacher

import (
	"github.com/plumbline-go/plumbline/golden/canonical"
)

// Implementation says what produced a target. The keys are those of the script's
// evidence, with go_version in place of python_version.
type Implementation struct {
	// Name is the producer, ProducerSHA256 the hash of its executable.
	Name           string
	ProducerSHA256 string
	// RepositoryURL and RepositoryCommit say where its source is; the commit is ""
	// where the build doesn't know it.
	RepositoryURL, RepositoryCommit string
	PackageVersion                  string
	// DependencyLockSHA256 is the hash of the list of modules, with their versions
	// and sums, that the executable is made of.
	DependencyLockSHA256 string
	GoVersion            string
	// FrameworkVersion is that of the library that computes.
	FrameworkVersion string
	// Device is what it computes on, SourceDType in which arithmetic.
	Device, SourceDType string
	// Attention names the kernel; "eager" is plain matrix products and a softmax.
	Attention string
	// Cache says whether steps reuse what earlier ones computed.
	Cache bool
}

// logitDType is how rows are stored.
const logitDType = "f32_le"

func (i Implementation) value() canonical.Value {
	s := func(key, text string) canonical.Member {
		return canonical.Member{Key: key, Value: canonical.String(text)}
	}
	return canonical.Object(
		s("name", i.Name), s("producer_sha256", i.ProducerSHA256), s("repository_url", i.RepositoryURL), s("repository_commit", i.RepositoryCommit),
		s("package_version", i.PackageVersion), s("dependency_lock_sha256", i.DependencyLockSHA256), s("go_version", i.GoVersion),
		s("framework_version", i.FrameworkVersion), s("device", i.Device), s("source_dtype", i.SourceDType), s("logit_dtype", logitDType),
		s("attention_implementation", i.Attention), canonical.Member{Key: "cache_enabled", Value: canonical.Bool(i.Cache)},
	)
}

// implementationLayouts are the keys of the script's producer, and of ours.
var implementationLayouts = []layout{
	{"name", "producer_sha256", "repository_url", "repository_commit", "package_version", "dependency_lock_sha256", "python_version",
		"framework_version", "device", "source_dtype", "logit_dtype", "attention_implementation", "cache_enabled"},
	{"name", "producer_sha256", "repository_url", "repository_commit", "package_version", "dependency_lock_sha256", "go_version",
		"framework_version", "device", "source_dtype", "logit_dtype", "attention_implementation", "cache_enabled"},
}
