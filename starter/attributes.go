package starter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RegisterAttributes returns the command that registers the search attributes of runs with a
// server that does not know them.
func RegisterAttributes() string {
	var b strings.Builder
	b.WriteString("temporal operator search-attribute create")
	for _, a := range spec.Attributes() {
		fmt.Fprintf(&b, " --name %s --type %s", a.Name, a.Type)
	}
	return b.String()
}

// attribute is a search attribute that a run is started with.
type attribute struct {
	name string
	set  temporal.SearchAttributeUpdate
}

// attributes returns the search attributes that a run is started with, in the order of
// [spec.Attributes]. The run updates them. If a namespace does not know them, lists use the
// memo and the results of runs instead.
func attributes(s *spec.RunSpec, o Options) []attribute {
	full := s.WithDefaults()
	keyword := func(name, value string) attribute {
		return attribute{name, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(cmp.Or(value, spec.AttributeNone))}
	}
	number := func(name string, value int) attribute {
		return attribute{name, temporal.NewSearchAttributeKeyInt64(name).ValueSet(int64(value))}
	}
	return []attribute{
		keyword(spec.AttributeOwner, o.Owner),
		keyword(spec.AttributeVerdict, ""),
		{spec.AttributeHost, temporal.NewSearchAttributeKeyKeywordList(spec.AttributeHost).ValueSet([]string{cmp.Or(o.Host, spec.AttributeNone)})},
		keyword(spec.AttributeName, s.Name),
		keyword(spec.AttributeCause, ""),
		keyword(spec.AttributeExitCode, ""),
		keyword(spec.AttributePriority, strconv.Itoa(*full.Priority)),
		number(spec.AttributeTasks, len(full.TaskList())),
		number(spec.AttributeRestarts, 0),
	}
}

// withAttributes starts a run with the attributes that the namespace knows. It finds them by
// trying, because a request for them would cost every start a round trip.
func withAttributes(set []attribute, start func(temporal.SearchAttributes) error) error {
	for {
		updates := make([]temporal.SearchAttributeUpdate, len(set))
		for i, a := range set {
			updates[i] = a.set
		}
		err := start(temporal.NewSearchAttributes(updates...))
		refused := refusedAttribute(err)
		if refused == "" {
			return err
		}
		// The attributes of later versions are registered together: if one is missing, all of
		// them are.
		set = slices.DeleteFunc(set, func(a attribute) bool {
			return a.name == refused || !slices.Contains(firstAttributes, a.name)
		})
	}
}

var firstAttributes = []string{spec.AttributeOwner, spec.AttributeVerdict, spec.AttributeHost}

// refusedAttribute returns the search attribute that the server's refusal names, if any.
func refusedAttribute(err error) string {
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		for _, a := range spec.Attributes() {
			if strings.Contains(invalid.Message, a.Name) {
				return a.Name
			}
		}
	}
	return ""
}
