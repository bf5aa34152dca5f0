package workers

import (
	"cmp"
	"context"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
)

// CheckAllowed returns an error if the server refuses a host worker with these options, because it
// refuses this client or does not have the namespace.
func (o Options) CheckAllowed(ctx context.Context, c client.Client) error {
	namespace := o.namespaceName()
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	switch serviceerror.ToStatus(err).Code() {
	case codes.PermissionDenied, codes.Unauthenticated:
		return err
	case codes.NotFound:
		return fmt.Errorf("the namespace %q: %w; use another one with --namespace", namespace, err)
	}
	return nil
}

// namespaceName returns the namespace for runs on this host.
func (o Options) namespaceName() string {
	c, err := o.Server.Client()
	if err != nil {
		return client.DefaultNamespace
	}
	return cmp.Or(c.Namespace, client.DefaultNamespace)
}
