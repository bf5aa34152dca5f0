package runs

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// Attribute is an initial search attribute of a run.
type Attribute struct {
	Name string
	Set  temporal.SearchAttributeUpdate
}

// Attributes returns a run's initial search attributes, in the order of [spec.Attributes]. The run
// updates them. If a namespace does not define them, lists use the runs' memos and results instead.
// host is the only host on which the tasks can run, or empty if unknown.
func Attributes(s *spec.RunSpec, owner, host string) []Attribute {
	full := s.WithDefaults()
	keyword := func(name, value string) Attribute {
		return Attribute{name, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(cmp.Or(value, spec.AttributeNone))}
	}
	number := func(name string, value int) Attribute {
		return Attribute{name, temporal.NewSearchAttributeKeyInt64(name).ValueSet(int64(value))}
	}
	return []Attribute{
		keyword(spec.AttributeOwner, owner),
		keyword(spec.AttributeVerdict, ""),
		{spec.AttributeHost, temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost).ValueSet([]string{cmp.Or(host, spec.AttributeNone)})},
		keyword(spec.AttributeName, s.Name),
		keyword(spec.AttributeCause, ""),
		keyword(spec.AttributeExitCode, ""),
		keyword(spec.AttributePriority, strconv.Itoa(*full.Priority)),
		number(spec.AttributeTasks, len(full.TaskList())),
		number(spec.AttributeRestarts, 0),
	}
}

// WithAttributes starts a run with those attributes that the namespace defines. It finds them by
// trial, because listing them would cost every start a round trip.
func WithAttributes(set []Attribute, start func(temporal.SearchAttributes) error) error {
	for {
		updates := list.Of(set, func(a Attribute) temporal.SearchAttributeUpdate { return a.Set })
		err := start(temporal.NewSearchAttributes(updates...))
		refused := RefusedAttribute(err)
		if refused == "" {
			return err
		}
		// The attributes of later versions are registered together. If one is missing, all are.
		set = slices.DeleteFunc(set, func(a Attribute) bool {
			return a.Name == refused || !slices.Contains(firstAttributes, a.Name)
		})
	}
}

var firstAttributes = []string{spec.AttributeOwner, spec.AttributeVerdict, spec.AttributeHost}

// RefusedAttribute returns the search attribute that the server's refusal names, if any.
func RefusedAttribute(err error) string {
	if invalid, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		for _, a := range spec.Attributes() {
			if strings.Contains(invalid.Message, a.Name) {
				return a.Name
			}
		}
	}
	return ""
}
