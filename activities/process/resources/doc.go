// Package resources shares the GPUs and CPUs of a host out to the tasks of a run that are on
// it: `devices` and `cpus` of a spec. [Read] lists the devices of the host, and
// [Inventory.Split], which is pure, assigns them.
//
// A list is shared by the tasks on the host whose types take from it, in the order of local
// ranks. All types without a list of their own take from the run's; a type with one shares it
// out among its own tasks, and two lists of a spec may overlap.
//
// Devices go round: of devices 0 to 3 two tasks get "0,2" and "1,3". Each task needs one. A
// task numbers the devices that it sees from 0. A program that sees all devices takes device
// LOCAL_RANK; here it must take device 0. CPUs are handed out in blocks: whole cores if there
// are enough of them, and on one NUMA node if the numbers allow it. If there are more tasks
// than CPUs, several tasks get the same CPU.
//
// These devices count:
//
//   - GPUs of NVIDIA that the driver lists and whose /dev/nvidia<N> may be opened, which a
//     container limits; for AMD, the compute nodes of /sys/class/kfd whose /dev/dri/renderD<N>
//     may be opened. A host that creates its device files only when they are first used has
//     none until then (nvidia-smi creates them), and slices of a GPU (MIG) are not counted:
//     list their names.
//   - The host worker's own CUDA_VISIBLE_DEVICES limits these, and auto then stands for its
//     list, in its order. On AMD HIP_VISIBLE_DEVICES takes precedence, as in HIP, and the
//     numbers in both refer to the devices that ROCR_VISIBLE_DEVICES leaves.
//   - auto without a GPU sets nothing, so that a spec also works on a laptop. If no GPU is
//     seen, the numbers of a list are refused, unless the host worker's CUDA_VISIBLE_DEVICES
//     names GPUs: the driver may be different. Names of devices (UUIDs) are never
//     checked.
//   - CPUs that this process may run on, which a container or taskset limits.
//     A container's quota of CPU time is not a set of CPUs and changes nothing here.
//
// A fleet gives each of its runs GPUs that no other run of it has, by name. Other runs on one
// host at the same time are independent: two runs with auto get the same GPUs. For CPUs this
// holds for all runs; `clusterrun run` says so. To keep such runs apart, give them lists.
package resources
