package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A workflow task that sets a search attribute which the namespace does not know
// fails for ever. So a run sets only those that it was started with: the server has
// let them pass once, with values of the same kind.
var (
	verdictAttribute = temporal.NewSearchAttributeKeyKeyword(spec.AttributeVerdict)
	hostAttribute    = temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost)
)

// noteVerdict sets the attribute by which the run is found by its verdict.
func noteVerdict(ctx workflow.Context, v spec.Verdict) {
	if _, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(verdictAttribute); ok {
		upsert(ctx, verdictAttribute.ValueSet(string(v)))
	}
}

// noteHosts sets the attribute by which the run is found by the hosts that have its tasks.
func (r *clusterRun) noteHosts(ctx workflow.Context) {
	noted, ok := workflow.GetTypedSearchAttributes(ctx).GetKeywordList(hostAttribute)
	if hosts := searchable(r.hosts); ok && !slices.Equal(noted, hosts) {
		upsert(ctx, hostAttribute.ValueSet(hosts))
	}
}

func upsert(ctx workflow.Context, u temporal.SearchAttributeUpdate) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, u); err != nil {
		workflow.GetLogger(ctx).Warn("a search attribute could not be set", "error", err)
	}
}

const (
	// maxSearchable bounds the names in the attribute: by default a server takes 2 KiB
	// of JSON for each.
	maxSearchable = 2000
	// maxHostName is what SQL databases take of one name.
	maxHostName = 255
)

// searchable returns the names of the hosts, in rank order, as many as fit.
func searchable(hosts []*host) []string {
	var names []string
	size := 0
	for _, h := range hosts {
		size += len(`"",`)
		for i := range len(h.name) {
			if c := h.name[i]; 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' {
				size++
			} else {
				size += len(`\u0000`) // at most, whatever the encoder does with it
			}
		}
		if size > maxSearchable {
			break
		}
		if len(h.name) <= maxHostName {
			names = append(names, h.name)
		}
	}
	if names == nil {
		return []string{spec.AttributeNone}
	}
	return names
}
