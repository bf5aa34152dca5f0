// Package iface defines the types that Temporal's server uses to request workers at a cloud
// provider from its worker controller.
package iface

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
)

// ValidationResultFailed is the status of an invalid specification.
const ValidationResultFailed ValidationResult = "failed"

type (
	ComputeProviderType  string
	ScalingAlgorithmType string
	ValidationResult     string

	ComputeProviderSpec struct {
		ProviderType  ComputeProviderType
		Config        *commonpb.Payload
		NexusEndpoint string
	}

	ScalingAlgorithmSpec struct {
		ScalingAlgorithm ScalingAlgorithmType
		Config           *commonpb.Payload
	}

	ScalingGroupSpec struct {
		TaskTypes []enumspb.TaskQueueType
		Compute   ComputeProviderSpec
		Scaling   *ScalingAlgorithmSpec
	}

	ScalingGroupSpecUpdate struct {
		Spec       ScalingGroupSpec
		UpdateMask []string
	}

	WorkerControllerInstanceSpec struct {
		ScalingGroupSpecs map[string]ScalingGroupSpec
	}

	ValidationStatus struct {
		LastValidationTime time.Time
		Status             ValidationResult
		ErrMessage         string
	}

	QueryDescribeWorkerControllerInstanceResponse struct {
		Spec             *WorkerControllerInstanceSpec
		ValidationStatus *ValidationStatus
	}

	UpdateWorkerControllerInstanceResponse struct {
		Spec *WorkerControllerInstanceSpec
	}
)
