package workflows

import (
	"cmp"
	"slices"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A workflow task that sets a search attribute unknown to the namespace fails forever. So a run
// sets only its initial attributes, which the server has already accepted with values of the same
// kind.
var (
	verdictAttribute  = temporal.NewSearchAttributeKeyKeyword(spec.AttributeVerdict)
	causeAttribute    = temporal.NewSearchAttributeKeyKeyword(spec.AttributeCause)
	exitCodeAttribute = temporal.NewSearchAttributeKeyKeyword(spec.AttributeExitCode)
	hostAttribute     = temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost)
	tasksAttribute    = temporal.NewSearchAttributeKeyInt64(spec.AttributeTasks)
	restartsAttribute = temporal.NewSearchAttributeKeyInt64(spec.AttributeRestarts)
)

// noteEnd sets the search attributes for the end of the run. restarts counts the restarted
// processes.
func noteEnd(ctx workflow.Context, result *spec.RunResult, restarts int) {
	known := workflow.GetTypedSearchAttributes(ctx)
	var n changes
	n.keyword(known, verdictAttribute, string(result.Verdict))
	n.keyword(known, causeAttribute, cmp.Or(string(result.Cause()), spec.AttributeNone))
	n.keyword(known, exitCodeAttribute, strconv.Itoa(result.ExitCode))
	n.number(known, restartsAttribute, restarts)
	n.upsert(ctx)
	countEnd(ctx, result)
}

// countEnd counts a finished run in the metrics.
func countEnd(ctx workflow.Context, result *spec.RunResult) {
	workflow.GetMetricsHandler(ctx).WithTags(map[string]string{
		"verdict": string(result.Verdict), "cause": string(result.Cause()),
	}).Counter(spec.MetricRunsEnded).Inc(1)
}

// noteGroup sets the search attributes for the group's hosts and size. If only the number of
// restarts changed, it does so only at powers of two, because a group may restart forever.
func (v *reporter) noteGroup(ctx workflow.Context) {
	known := workflow.GetTypedSearchAttributes(ctx)
	var n changes
	if hosts, ok := known.GetKeywordList(hostAttribute); ok && !slices.Equal(hosts, searchable(v.hosts)) {
		n = append(n, hostAttribute.ValueSet(searchable(v.hosts)))
	}
	tasks := len(v.sized.TaskList())
	n.number(known, tasksAttribute, tasks)
	if again := v.machine.Generation(); len(n) > 0 || again&(again-1) == 0 {
		n.number(known, restartsAttribute, again*tasks)
	}
	n.upsert(ctx)
}

// noteAttributes sets the search attributes of a run whose starter set none, perhaps because it
// does not know the namespace's attributes. If the server cannot list those, the run sets none.
func noteAttributes(ctx workflow.Context, s *spec.RunSpec, owner string) {
	all := runs.Attributes(s, owner, "")
	if len(knownOf(all, attributesIn(workflow.GetTypedSearchAttributes(ctx)))) > 0 {
		return
	}
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: hereTakes})
	var names []string
	if err := workflow.ExecuteLocalActivity(ctx, spec.ActivityKnownAttributes).Get(ctx, &names); err != nil {
		workflow.GetLogger(ctx).Warn("the run has no search attributes", "error", err)
	}
	knownOf(all, names).upsert(ctx)
}

// attributesIn returns the names of all attributes, including those that the SDK sets.
func attributesIn(known temporal.SearchAttributes) (names []string) {
	//workflowcheck:ignore the order of names does not matter
	for key := range known.GetUntypedValues() {
		names = append(names, key.GetName())
	}
	return names
}

// knownOf returns the attributes in all that are listed in names.
func knownOf(all []runs.Attribute, names []string) (n changes) {
	for _, a := range all {
		if slices.Contains(names, a.Name) {
			n = append(n, a.Set)
		}
	}
	return n
}

// changes collects the attribute updates of a single event.
type changes []temporal.SearchAttributeUpdate

func (n *changes) keyword(known temporal.SearchAttributes, key temporal.SearchAttributeKeyKeyword, value string) {
	if old, ok := known.GetKeyword(key); ok && old != value {
		*n = append(*n, key.ValueSet(value))
	}
}

func (n *changes) number(known temporal.SearchAttributes, key temporal.SearchAttributeKeyInt64, value int) {
	if old, ok := known.GetInt64(key); ok && old != int64(value) {
		*n = append(*n, key.ValueSet(int64(value)))
	}
}

func (n changes) upsert(ctx workflow.Context) {
	if len(n) == 0 {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, n...); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes could not be set", "error", err)
	}
}

const (
	// maxSearchable limits the attribute's size in bytes. By default, a server accepts 2 KiB of
	// JSON per attribute.
	maxSearchable = 2000
	// maxHostName is the maximum length of a name, in bytes, in SQL databases.
	maxHostName = 255
)

// searchable returns as many host names as fit into the attribute, in rank order.
func searchable(hosts []*host) []string {
	var names []string
	size := 0
	for _, h := range hosts {
		size += len(`"",`)
		for i := range len(h.Name) {
			if c := h.Name[i]; 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' {
				size++
			} else {
				size += len(`\u0000`) // an upper bound for every encoder
			}
		}
		if size > maxSearchable {
			break
		}
		if len(h.Name) <= maxHostName {
			names = append(names, h.Name)
		}
	}
	if names == nil {
		return []string{spec.AttributeNone}
	}
	return names
}
