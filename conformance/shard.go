package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
)

// Shard is one of several runs that share the cases between them.
//
// Setting it is up to the caller: rules_go hands out the test functions of a go_test
// over the shards by the variables that [ShardFromEnv] reads, so that cases split
// inside such a function as well would be lost in the shards that don't have it. Run
// refuses a shard where it sees that; see [AnnounceShard].
type Shard struct {
	// Index counts from 0.
	Index int
	Total int
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Total) }

// named is a shard in a sentence, where people count from 1 and flags from 0.
func (s Shard) named() string {
	return fmt.Sprintf("shard %d of %d (index %d)", s.Index+1, s.Total, s.Index)
}

func (s Shard) validate() error {
	switch {
	case s.Total < 1:
		return fmt.Errorf("conformance: shard %s: total: got %d, want at least 1", s, s.Total)
	case s.Index < 0 || s.Index >= s.Total:
		return fmt.Errorf("conformance: shard %s: index: got %d, want 0 <= index < %d: shards count from 0", s, s.Index, s.Total)
	}
	return nil
}

// The variables of Bazel's test sharding
// (https://bazel.build/reference/test-encyclopedia#test-sharding) and of Kubernetes'
// Indexed Jobs, which give an index alone; the total has to be handed in beside it.
const (
	bazelTotal  = "TEST_TOTAL_SHARDS"
	bazelIndex  = "TEST_SHARD_INDEX"
	bazelStatus = "TEST_SHARD_STATUS_FILE"
	podIndex    = "JOB_COMPLETION_INDEX"
	podTotal    = "PLUMBLINE_SHARDS"
)

// ShardFromEnv reads which shard this process is, as Bazel or a Kubernetes Indexed Job
// tell it; getenv is os.Getenv. It is nil where neither does. Two that contradict each
// other, and one that is told by half, are errors: a wrong guess would leave cases out.
func ShardFromEnv(getenv func(string) string) (*Shard, error) {
	read := func(indexName, totalName, missing string) (*Shard, error) {
		index, total := getenv(indexName), getenv(totalName)
		switch {
		case index == "" && total == "":
			return nil, nil
		case index == "":
			return nil, fmt.Errorf("conformance: shard: %s: got nothing, want an index beside %s=%s", indexName, totalName, total)
		case total == "":
			return nil, fmt.Errorf("conformance: shard: %s: got nothing, want the number of shards beside %s=%s%s", totalName, indexName, index, missing)
		}
		var s Shard
		for _, v := range []struct {
			name, value string
			to          *int
		}{{totalName, total, &s.Total}, {indexName, index, &s.Index}} {
			n, err := strconv.Atoi(v.value)
			if err != nil {
				return nil, fmt.Errorf("conformance: shard: %s: got %q, want a number", v.name, v.value)
			}
			*v.to = n
		}
		if err := s.validate(); err != nil {
			return nil, fmt.Errorf("%w (%s and %s)", err, indexName, totalName)
		}
		return &s, nil
	}
	bazel, err := read(bazelIndex, bazelTotal, "")
	if err != nil {
		return nil, err
	}
	// The total alone says nothing: a manifest may set it for its merging step too.
	var pod *Shard
	if getenv(podIndex) != "" {
		if pod, err = read(podIndex, podTotal, ": an Indexed Job tells its pods no total, so the manifest has to set it to the number of completions"); err != nil {
			return nil, err
		}
	}
	switch {
	case bazel != nil && pod != nil && *bazel != *pod:
		return nil, fmt.Errorf("conformance: shard: got %s (%s, %s) and %s (%s, %s), want one of them or the same",
			bazel, bazelIndex, bazelTotal, pod, podIndex, podTotal)
	case bazel != nil:
		return bazel, nil
	}
	return pod, nil
}

// ErrRunnerShards says that the test runner splits the test functions themselves.
var ErrRunnerShards = errors.New("the test runner hands out the test functions over the shards itself, as rules_go does: " +
	"cases split inside one of them would be lost; leave Config.Shard nil there, or run plumbline gate")

// announced are the status files that this process made.
var announced sync.Map

// AnnounceShard tells Bazel that this process shards: it makes the file that
// TEST_SHARD_STATUS_FILE names, if it names one. The error is [ErrRunnerShards] where
// the file is there already and this process didn't make it: then something before it,
// such as the main function that rules_go generates, has split the work.
func AnnounceShard(getenv func(string) string) error {
	path := getenv(bazelStatus)
	if path == "" {
		return nil
	}
	if _, ours := announced.LoadOrStore(path, true); ours {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err == nil {
		err = f.Close()
	}
	if errors.Is(err, fs.ErrExist) {
		announced.Delete(path)
		return fmt.Errorf("conformance: shard: %s=%s exists already: %w", bazelStatus, path, ErrRunnerShards)
	}
	if err != nil {
		return fmt.Errorf("conformance: shard: %s: %w", bazelStatus, err)
	}
	return nil
}
