// Package taskenv computes the environment of a process on its host, so that
// programs written for TensorFlow's TF_CONFIG, for torchrun or for JAX run
// unmodified. It is pure, but for [Secret]: what it needs of the outside is passed in.
//
// An environment has four layers, and a later one wins:
//
//  1. the host worker's own, without what would mislead ([Clean]): which rank of
//     another launch it is, and its connection to Temporal; and without what the
//     spec unsets;
//  2. which GPUs it sees and how many threads its CPUs are for, where the spec
//     shares them out; and what the profiles say: TF_CONFIG, torchrun's set, JAX's
//     coordinator;
//  3. the env of the spec, because a user who sets MASTER_ADDR or
//     OMP_NUM_THREADS means it;
//  4. CLUSTERRUN_*. The prefix is ours: a spec cannot set or replace any of it,
//     or a program could not rely on it.
//
// A spec whose env names the GPUs a task sees decides that alone: nothing of it is
// then set from devices. A process that is bound to CPUs gets their number as
// OMP_NUM_THREADS, and not torchrun's 1.
//
// The profiles do not exclude each other and all are on by default. Some
// choices in them are ours:
//
//   - torchrun has one role per agent; here a role is a task type, so ROLE_RANK
//     counts the tasks of the process's own type. The node of GROUP_RANK is a
//     host.
//   - TF_CONFIG has every task of the cluster, an evaluator included, as the
//     spec has it. A task that is started outside the spec may leave gaps in
//     the indices of its type; TensorFlow then wants an object instead of a
//     list, and gets it.
//   - GRPC_FAIL_FAST is set only where the spec's env has it; an inherited one
//     is passed on.
//   - Of NCCL's error handling only TORCH_NCCL_ASYNC_ERROR_HANDLING is set.
//     The name of old versions of torch, without TORCH_, makes new ones warn.
//   - JAX reads only its coordinator's address. The number of processes and
//     this one's are set too, under the names that Kubeflow has made common.
//
// A Member's LocalRank, LocalWorldSize and HostIndex are given and not derived:
// a task that is added while the run lives comes after the others on its host,
// and must not renumber them.
package taskenv
