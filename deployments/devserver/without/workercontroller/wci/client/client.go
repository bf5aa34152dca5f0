// Package client replaces the worker controller of Temporal's server. Deployment versions neither
// have nor can get workers at a cloud provider.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

// Module provides a Client.
var Module = fx.Provide(func() Client { return Client{} })

// Client answers requests about deployment versions.
type Client struct{}

func refused() error {
	return serviceerror.NewInvalidArgument("this server starts no workers at cloud providers")
}

// DescribeWorkerControllerInstance reports that there is no instance.
func (Client) DescribeWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error) {
	return nil, nil, serviceerror.NewNotFound("this server has no worker controller")
}

// UpdateWorkerControllerInstance refuses.
func (Client) UpdateWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, []byte, string, map[string]iface.ScalingGroupSpecUpdate, []string) (*iface.UpdateWorkerControllerInstanceResponse, error) {
	return nil, refused()
}

// ValidateWorkerControllerInstanceSpec refuses.
func (Client) ValidateWorkerControllerInstanceSpec(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string, map[string]iface.ScalingGroupSpecUpdate, []string) error {
	return refused()
}

// DeleteWorkerControllerInstance does nothing, because there is nothing to delete.
func (Client) DeleteWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string) error {
	return nil
}
