// Package resources shares the GPUs and CPUs of a host out to the tasks of a run
// that are on it: `devices` and `cpus` of a spec. [Read] says what there is, and
// [Inventory.Split], which is pure, says who gets what.
//
// Those who share are the tasks on the host whose types take from the same list,
// in the order of local ranks. All types without a list of their own take from
// the run's; a type with one shares it out among its own tasks, and whether two
// lists overlap is the spec's business.
//
// Devices go round: of devices 0 to 3 two tasks get "0,2" and "1,3".
// Each task needs one. A task numbers those it sees from 0, so a program that
// takes device LOCAL_RANK, as one does that sees all, now has to take device 0.
// CPUs are handed out in blocks: whole cores where there are enough of them, and
// on one NUMA node where the numbers allow it. Where there are more tasks than
// CPUs they take turns.
//
// What counts as there:
//
//   - GPUs of NVIDIA are those the driver lists and whose /dev/nvidia<N> may be
//     opened, which is what a container limits; those of AMD the compute nodes of
//     /sys/class/kfd whose /dev/dri/renderD<N> may be opened. A host that makes its
//     device files only when they are first used has none until then (nvidia-smi
//     makes them), and slices of a GPU (MIG) are not counted: list their names.
//   - The host worker's own CUDA_VISIBLE_DEVICES narrows that down, and auto is
//     then what it lists, in its order. On AMD HIP_VISIBLE_DEVICES comes before it,
//     as in HIP, and the numbers of both count what ROCR_VISIBLE_DEVICES leaves.
//   - auto without a GPU sets nothing, so that a spec also works on a laptop. Where
//     no GPU is seen a list is taken at its word: the driver may be of another
//     kind. Names of devices (UUIDs) are never checked.
//   - CPUs are those this process may run on, which a container or taskset limits.
//     A container's quota of CPU time is not a set of CPUs and changes nothing here.
//
// A fleet gives each of its runs GPUs that no other run of it has, by name. Other
// runs that are on one host at the same time do not know of each other: two runs
// with auto get the same GPUs. As to CPUs that holds for all runs. Give them lists.
package resources
