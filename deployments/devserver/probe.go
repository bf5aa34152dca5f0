package devserver

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"go.temporal.io/server/common/headers"
)

const (
	frontendService = "temporal.api.workflowservice.v1.WorkflowService"

	// redial is the time between attempts to connect, and between requests that the server cannot
	// answer yet.
	redial = 2 * time.Millisecond
)

// awaitReady returns when a client can use the namespace, because the frontend is healthy, has the
// namespace, and reaches the shard with the runs.
func awaitReady(ctx context.Context, frontend, namespace string, c credentials.TransportCredentials) error {
	conn, err := grpc.NewClient("passthrough:///"+frontend,
		grpc.WithTransportCredentials(c),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: redial, Multiplier: 1, MaxDelay: redial},
			// Otherwise the handshake must finish in the time between two attempts.
			MinConnectTimeout: startBound,
		}),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The probe is not a use of the server.
	ctx = metadata.AppendToOutgoingContext(ctx,
		headers.ClientNameHeaderName, headers.ClientNameServer,
		headers.ClientVersionHeaderName, headers.ServerVersion,
		headers.SupportedServerVersionsHeaderName, headers.SupportedServerVersions)

	if err := awaitHealthy(ctx, conn); err != nil {
		return fmt.Errorf("health of %s: %w", frontend, err)
	}
	client := workflowservice.NewWorkflowServiceClient(conn)
	err = retry(ctx, func() error {
		_, err := client.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return err
	}, codes.OK)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	// This run does not exist. The server is ready once it reports that.
	err = retry(ctx, func() error {
		_, err := client.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: namespace,
			Execution: &commonpb.WorkflowExecution{WorkflowId: "clusterrun-devserver/probe"},
		})
		return err
	}, codes.NotFound)
	if err != nil {
		return fmt.Errorf("runs of %s: %w", namespace, err)
	}
	return nil
}

// awaitHealthy waits until the server reports that it is healthy.
func awaitHealthy(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{Service: frontendService})
	if err != nil {
		return err
	}
	for {
		resp, err := watch.Recv()
		if err != nil {
			return err
		}
		if resp.Status == healthpb.HealthCheckResponse_SERVING {
			return nil
		}
	}
}

// retry repeats ask until it returns want. It polls because the services find each other as they
// start, without an event to wait for.
func retry(ctx context.Context, ask func() error, want codes.Code) error {
	for {
		err := ask()
		if status.Code(err) == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(redial):
		}
	}
}
