// Package taskenv computes the environment of a process on its host, so that programs written
// for TensorFlow's TF_CONFIG, for torchrun or for JAX run unmodified. It is pure, except for
// [Secret]: its inputs are passed in.
//
// An environment has four layers, and a later one wins:
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
// A spec that names the visible GPUs in its env overrides devices completely: no GPU variable
// is then set from devices. For a process that is bound to CPUs, OMP_NUM_THREADS is their
// number, not 1 as with torchrun.
//
// The profiles do not exclude each other, and all are on by default. Some choices in them are
// ours:
//
//   - torchrun has one role per agent; here a role is a task type, so ROLE_RANK counts the
//     tasks of the process's own type. The node of GROUP_RANK is a host.
//   - TF_CONFIG has every task of the cluster, an evaluator included, as the spec has it. A
//     task that is started outside the spec may leave gaps in the indices of its type; for
//     these TensorFlow requires an object instead of a list, and gets it.
//   - GRPC_FAIL_FAST is set only if the spec's env has it; an inherited one is passed on.
//   - Of NCCL's error handling only TORCH_NCCL_ASYNC_ERROR_HANDLING is set. The name that old
//     versions of torch use, without TORCH_, makes new versions warn.
//   - torch's Flight Recorder writes its dump of a collective that has timed out to the
//     directory of the process (TORCH_FR_DUMP_TEMP_FILE, TORCH_NCCL_DEBUG_INFO_TEMP_FILE), so
//     that the dump outlives the next attempt. The recorder itself is neither turned on nor
//     off.
//   - PYTHONFAULTHANDLER is set with the hook for Python: a crash in native code then prints the
//     lines of Python that led to it.
//   - JAX reads only the address of its coordinator. The number of processes and the index of
//     the process are set too, under the names that Kubeflow has made common.
//
// The LocalRank, LocalWorldSize and HostIndex of a Member are given rather than derived: a task
// that is added while the run lives comes after the others on its host, and must not renumber
// them.
package taskenv
