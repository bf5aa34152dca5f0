// Package taskenv computes a process's environment on its host, so that programs written for
// TensorFlow's TF_CONFIG, for torchrun or for JAX run unmodified. Except for [Secret], it is pure.
//
// An environment has four layers; later layers win:
//
//  1. the host worker's environment, without misleading variables ([Clean]), such as the rank in
//     another launch and the connection to Temporal, and without variables that the spec unsets;
//  2. the profiles' variables (TF_CONFIG, those of torchrun, JAX's coordinator) and, if the spec
//     divides GPUs and CPUs among tasks, the GPUs that the process sees and the number of threads
//     for its CPUs;
//  3. the spec's env, because a user who sets MASTER_ADDR or OMP_NUM_THREADS means it;
//  4. CLUSTERRUN_*. The prefix is reserved, because programs could not rely on these variables if
//     a spec could set or replace them.
//
// If a spec selects the visible GPUs in its env, this overrides devices completely, and devices do
// not set any GPU variables. For a process bound to CPUs, OMP_NUM_THREADS is their number, not 1 as
// with torchrun.
//
// The profiles do not exclude each other, and all are on by default. We made the following choices:
//
//   - torchrun has one role per agent. Here, a role is a task type, so ROLE_RANK is the rank among
//     tasks of the process's type. In GROUP_RANK, a node is a host.
//   - TF_CONFIG lists every task of the cluster, including an evaluator, as in the spec. A task
//     that is not in the spec may leave gaps in its type's indices. For such a type, TensorFlow
//     requires, and gets, an object instead of a list.
//   - GRPC_FAIL_FAST is set only if the spec's env sets it; an inherited value is passed on.
//   - For NCCL's error handling only TORCH_NCCL_ASYNC_ERROR_HANDLING is set. New versions of torch
//     warn about the old name without TORCH_.
//   - torch's Flight Recorder dumps a timed-out collective to the process's directory
//     (TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE), so that the dump outlives the
//     next attempt. Whether the recorder is enabled remains unchanged.
//   - PYTHONFAULTHANDLER is set with the Python hook, so that a crash in native code prints the
//     Python lines that led to it.
//   - JAX reads only its coordinator's address. The number of processes and the process's index are
//     also set, under the names that Kubeflow made common.
//
// A Member's LocalRank, LocalWorldSize and HostIndex are given rather than derived, because a task
// that is added to an open run comes last on its host, and must not renumber the other tasks.
package taskenv
