// Package resources divides a host's GPUs and CPUs among a run's tasks on it, by the spec's
// `devices` and `cpus`. [Read] lists the host's devices, and [Inventory.Split], which is pure,
// assigns them. A [Sampler] measures the processes' use of processors,
// memory and GPUs.
//
// A list is shared, in local rank order, by the host's tasks of the types that use it. A type with
// its own list divides it among its own tasks; all other types use the run's list. Two lists in a
// spec may overlap.
//
// Devices are dealt in turn: if there are devices 0 to 3, two tasks get "0,2" and "1,3". There must
// be at least one device per task. A task numbers its visible devices from 0, so a program that
// uses device LOCAL_RANK when it sees all devices must use device 0 instead. CPUs are assigned in
// blocks: whole cores if there are enough, and on one NUMA node if the numbers allow. If there are
// more tasks than CPUs, several tasks share a CPU.
//
// The following devices count:
//
//   - NVIDIA GPUs that the driver lists, if /dev/nvidia<N> may be opened, which a container limits.
//     AMD GPUs are the compute nodes in /sys/class/kfd, if /dev/dri/renderD<N> may be opened. Some
//     hosts create device files only on first use (nvidia-smi creates them). GPU slices (MIG) are
//     not counted, and must be listed by name.
//   - The host worker's own CUDA_VISIBLE_DEVICES limits these devices. If it is set, auto means the
//     devices in this variable, in its order. For AMD GPUs, HIP_VISIBLE_DEVICES takes precedence,
//     as in HIP, and numbers in both variables refer to the devices that ROCR_VISIBLE_DEVICES
//     selects.
//   - If there are no GPUs, auto does not set any variables, so that a spec also works on a laptop.
//     If no GPU is found, numbers in a list are refused, unless the host worker's
//     CUDA_VISIBLE_DEVICES names GPUs, because the driver may be a different one. Device names
//     (UUIDs) are never checked.
//   - CPUs that this process may run on, which a container or taskset limits. A container's CPU
//     time quota is not a set of CPUs and has no effect.
//
// A fleet assigns its runs disjoint GPUs, by name. Other simultaneous runs on a host are
// independent, so two runs with auto get the same GPUs. CPUs are never assigned by a fleet, so this
// applies to the CPUs of all runs, and `clusterrun run` warns about it. To keep such runs apart,
// give each its own list.
package resources
