package server

import (
	"context"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/activity"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// KnownAttributes is an activity that returns the run search attributes that the namespace defines
// with the expected type. The list is empty if the server does not permit the query.
func (s *Server) KnownAttributes(ctx context.Context) (names []string, err error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	namespace := activity.GetInfo(ctx).Namespace
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if servererror.IsRefused(err) {
		return nil, nil
	}
	for _, a := range spec.Attributes() {
		if kind, ok := known.GetCustomAttributes()[a.Name]; ok && kind.String() == a.Type {
			names = append(names, a.Name)
		}
	}
	return names, err
}
