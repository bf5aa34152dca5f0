package fork

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// MostCPUs limits CPU numbers.
const MostCPUs = 8192

// onCPUs calls fork with the current thread bound to cpus, so that the child is also bound. If cpus
// is empty, the child may use all of the supervisor's CPUs. The caller must have locked the thread.
func onCPUs(cpus []int, fork func() (pid int, err error)) (int, error) {
	if len(cpus) == 0 {
		return fork()
	}
	before := unix.NewCPUSet(MostCPUs)
	if err := unix.SchedGetaffinityDynamic(0, before); err != nil {
		return 0, notBound(cpus, fault.Reason(err))
	}
	want := unix.NewCPUSet(MostCPUs)
	for _, n := range cpus {
		if n < 0 || n >= MostCPUs {
			return 0, notBound(cpus, fmt.Sprintf("there is no CPU %d", n))
		}
		want.Set(n)
	}
	if err := unix.SchedSetaffinityDynamic(0, want); err != nil {
		return 0, notBound(cpus, fault.Reason(err)+" (this process may use none of them)")
	}
	defer unbind(before)
	// The kernel silently omits CPUs that do not exist or are not allowed.
	got := unix.NewCPUSet(MostCPUs)
	if err := unix.SchedGetaffinityDynamic(0, got); err != nil {
		return 0, notBound(cpus, fault.Reason(err))
	}
	if i := slices.IndexFunc(cpus, func(n int) bool { return !got.IsSet(n) }); i >= 0 {
		return 0, notBound(cpus, fmt.Sprintf("this process may not use CPU %d", cpus[i]))
	}
	return fork()
}

// unbind restores the thread's CPUs. It must not fail, or the next child would also be bound. If
// the previously allowed CPUs are gone, it allows all CPUs.
func unbind(before unix.CPUSetDynamic) {
	if unix.SchedSetaffinityDynamic(0, before) != nil {
		before.Fill()
		_ = unix.SchedSetaffinityDynamic(0, before)
	}
}

func notBound(cpus []int, why string) error {
	return fault.NotStarted(fmt.Sprintf("binding to CPUs %v: %s", cpus, why))
}
