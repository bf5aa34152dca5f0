// Package taskenv computes a process's environment on its host, so that programs written for
// TensorFlow's TF_CONFIG, for torchrun or for JAX run unmodified. Except for [Secret], it is pure.
//
// An environment has four layers; later layers win:
//
//  1. the host worker's own environment without misleading variables ([Clean]), namely the rank
//     of another launch and its connection to Temporal, and without the variables that the spec
//     unsets;
//  2. the GPUs that the process sees and the number of threads for its CPUs, if the spec
//     divides them among tasks; and the variables of the profiles: TF_CONFIG, torchrun's set,
//     JAX's coordinator;
//  3. the env of the spec, because a user who sets MASTER_ADDR or OMP_NUM_THREADS means it;
//  4. CLUSTERRUN_*. The prefix is reserved: if a spec could set or replace these variables,
//     programs could not rely on them.
//
// A spec that names the visible GPUs in its env overrides devices completely, so that devices set
// no GPU variables. For a process bound to CPUs, OMP_NUM_THREADS is their number, not 1 as with
// torchrun.
//
// The profiles do not exclude each other, and all are on by default. Some choices in them are
// ours:
//
//   - torchrun has one role per agent. Here a role is a task type, so ROLE_RANK counts tasks of the
//     process's type. GROUP_RANK's node is a host.
//   - TF_CONFIG lists every task of the cluster, including an evaluator, as in the spec. A task
//     started outside the spec may leave gaps in its type's indices. For these TensorFlow requires,
//     and gets, an object instead of a list.
//   - GRPC_FAIL_FAST is set only if the spec's env sets it; an inherited value is passed on.
//   - For NCCL's error handling only TORCH_NCCL_ASYNC_ERROR_HANDLING is set. New versions of torch
//     warn about the old name without TORCH_.
//   - torch's Flight Recorder dumps a timed-out collective to the process's directory
//     (TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE), so that the dump outlives the
//     next attempt. The recorder is neither enabled nor disabled.
//   - PYTHONFAULTHANDLER is set with the Python hook, so that a crash in native code prints the
//     Python lines that led to it.
//   - JAX reads only its coordinator's address. The number of processes and the process's index are
//     also set, under the names that Kubeflow made common.
//
// A Member's LocalRank, LocalWorldSize and HostIndex are given rather than derived, because a task
// added to a running run comes last on its host and must not renumber the rest.
package taskenv
