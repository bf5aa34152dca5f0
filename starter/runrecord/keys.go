package runrecord

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// keysOf returns the IDs of the keys that encode the histories' payloads.
func keysOf(histories []*historypb.History) (ids []string) {
	visit := proxy.VisitPayloadsOptions{Visitor: func(_ *proxy.VisitPayloadsContext, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
		for _, p := range payloads {
			if key := spec.MissingKey(p.GetMetadata()); key != nil && !slices.Contains(ids, key.ID) {
				ids = append(ids, key.ID)
			}
		}
		return payloads, nil
	}}
	for _, h := range histories {
		_ = proxy.VisitPayloads(context.Background(), h, visit) // the visitor does not fail
	}
	slices.Sort(ids)
	return ids
}

// WhyNoSpec returns why a run's spec is unknown: "it is encoded with the key \"one\"".
func (a *Account) WhyNoSpec() string {
	if len(a.Keys) == 0 {
		return "unknown key format; written by a newer clusterrun?"
	}
	const most = 5
	quoted := list.Of(a.Keys, strconv.Quote)
	word := "key"
	if len(a.Keys) > 1 {
		word = "keys"
	}
	return fmt.Sprintf("it is encoded with the %s %s", word, shorten.List(quoted, most))
}
