package conformance_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
)

// The third of four pods of an Indexed Job; outside of tests, getenv is os.Getenv.
func ExampleShardFromEnv() {
	env := map[string]string{"JOB_COMPLETION_INDEX": "2", "PLUMBLINE_SHARDS": "4"}
	shard, err := conformance.ShardFromEnv(func(name string) string { return env[name] })
	fmt.Println(shard, err)

	delete(env, "JOB_COMPLETION_INDEX") // nothing says that the run is sharded
	shard, err = conformance.ShardFromEnv(func(name string) string { return env[name] })
	fmt.Println(shard == nil, err)
	// Output:
	// 2/4 <nil>
	// true <nil>
}
