package act

import (
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// togetherFlags are the flags of stop for stopping all tasks together.
type togetherFlags struct {
	together, clear  bool
	reason           string
	message, kind    string
	given            func(flag string) bool
	onlyWithTogether []string
}

// check refuses flags that contradict each other.
func (f *togetherFlags) check(wait bool) error {
	switch {
	case f.together && f.clear:
		return cli.Usagef("--together asks for a stop and --clear takes one back; give one of them")
	case f.clear && wait:
		return cli.Usagef("--clear has the run go on, so there is no end to wait for; leave --wait out")
	}
	if !f.together {
		for _, flag := range f.onlyWithTogether {
			if f.given(flag) {
				return cli.Usagef("--%s says why the tasks are to stop together; give --together as well", flag)
			}
		}
		return nil
	}
	if f.given("error") && f.message == "" {
		return cli.Usagef("--error is empty; say what went wrong, or leave it out")
	}
	if f.given("kind") && f.kind == "" {
		return cli.Usagef("--kind is empty; name a kind of error, such as ValueError, or leave it out")
	}
	return nil
}

func (f *togetherFlags) request() spec.TogetherRequest {
	q := spec.TogetherRequest{Reason: f.reason}
	if f.message != "" || f.kind != "" {
		q.Error = &spec.TogetherError{Kind: f.kind, Message: f.message}
	}
	return q
}
