package supervisor

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// Usage holds the resources that a process and its descendants have used.
//
// Processor time is exact if the process has a cgroup. Otherwise it covers living processes and
// those for which their parents or the supervisor waited. It does not cover the children of
// programs that ignore SIGCHLD, or daemons that left their session and exited.
type Usage struct {
	User   time.Duration `json:"user"`
	System time.Duration `json:"system"`
	// MaxRSS is the maximum memory in bytes. It is the kernel's number for a single process that
	// has ended, or the sum over all processes in a sample.
	MaxRSS int64 `json:"max_rss"`
	// GPUTime counts one second of one fully used GPU as a second.
	GPUTime time.Duration `json:"gpu_time,omitempty"`
	// MaxGPUMemory is the maximum GPU memory in a sample, in bytes.
	MaxGPUMemory int64 `json:"max_gpu_memory,omitempty"`
}

// GPUProcess is the GPU driver's account of an OS process.
type GPUProcess struct {
	PID    int
	Memory int64 // bytes
	// Busy is how many GPUs it keeps busy, such as 0.5.
	Busy float64
}

// Sample lists what a living process and its descendants use.
type Sample struct {
	Process ProcessRef
	Usage   Usage
	// CPUs and GPUs are the average numbers in use since the previous sample or the start.
	CPUs, GPUs float64
	RSS        int64 // bytes
	GPUMemory  int64 // bytes
	Processes  int
}

// SampleRequest holds what only the side can measure.
type SampleRequest struct{ GPUs []GPUProcess }

// SampleReply holds a sample of every living process.
type SampleReply struct{ Samples []Sample }

// sampled is a process's last sample, guarded by the supervisor's mu.
type sampled struct {
	at  time.Time // or when the process started
	cpu time.Duration
	// ended is the usage of descendants that the supervisor reaped.
	ended        Usage
	maxRSS       int64
	gpuTime      time.Duration
	maxGPUMemory int64
}

// Sample samples the living processes; see [API]. It reads one small file for each process on the
// host, which costs less than following each task's threads to their children.
func (s *supervisor) Sample(_ context.Context, r SampleRequest) (SampleReply, error) {
	s.sampling.Lock()
	defer s.sampling.Unlock()
	all, err := proc.PIDs()
	if err != nil {
		return SampleReply{}, err
	}
	host := hostUsage{s: s, stats: make(map[int]proc.Stat, len(all)), owners: make(map[int]*process, len(all)), uses: make(map[*process]*treeUsage)}
	s.mu.Lock()
	host.side = s.side.current()
	host.leaders = make(map[int]*process, len(s.living))
	for pid, p := range s.living {
		if p.phase == running {
			host.leaders[pid] = p
			host.uses[p] = &treeUsage{}
		}
	}
	s.mu.Unlock()
	if len(host.leaders) == 0 {
		return SampleReply{}, nil
	}
	host.read(all)
	host.addGPUs(r.GPUs)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var reply SampleReply
	for p, use := range host.uses {
		if p.phase == running && use.processes > 0 {
			reply.Samples = append(reply.Samples, p.sample(now, use))
		}
	}
	return reply, nil
}

// sample records a new sample. mu must be held.
func (p *process) sample(now time.Time, use *treeUsage) Sample {
	seen := &p.sampled
	user, system := use.user, use.system
	if !use.whole {
		user, system = user+seen.ended.User, system+seen.ended.System
	}
	// Processes that exit during sampling may be missed until the next sample.
	cpu := max(seen.cpu, user+system)
	v := Sample{Process: p.Ref(), RSS: use.rss, GPUMemory: use.gpuMemory, GPUs: use.gpus, Processes: use.processes}
	if elapsed := now.Sub(seen.at); elapsed > 0 {
		v.CPUs = float64(cpu-seen.cpu) / float64(elapsed)
		seen.gpuTime += time.Duration(use.gpus * float64(elapsed))
	}
	seen.at, seen.cpu = now, cpu
	seen.maxRSS = max(seen.maxRSS, use.rss)
	seen.maxGPUMemory = max(seen.maxGPUMemory, use.gpuMemory)
	v.Usage = Usage{
		User: user, System: system, MaxRSS: max(seen.maxRSS, seen.ended.MaxRSS),
		GPUTime: seen.gpuTime, MaxGPUMemory: seen.maxGPUMemory,
	}
	v.Process.Key.Run = p.task.run.key
	return v
}

// charge adds the usage of a descendant that the supervisor has reaped. mu must be held.
func (p *process) charge(r *syscall.Rusage) {
	u := usageOf(r)
	p.sampled.ended.User += u.User
	p.sampled.ended.System += u.System
	p.sampled.ended.MaxRSS = max(p.sampled.ended.MaxRSS, u.MaxRSS)
}

// used returns a process's usage, given its reaped leader's rusage. mu must be held.
func (p *process) used(leader *syscall.Rusage, cgroup *treeUsage) Usage {
	seen := &p.sampled
	u := usageOf(leader)
	if cgroup.whole {
		u.User, u.System = cgroup.user, cgroup.system
	} else {
		u.User, u.System = u.User+seen.ended.User, u.System+seen.ended.System
	}
	u.MaxRSS = max(u.MaxRSS, seen.ended.MaxRSS, seen.maxRSS)
	u.GPUTime, u.MaxGPUMemory = seen.gpuTime, seen.maxGPUMemory
	return u
}

func usageOf(r *syscall.Rusage) Usage {
	return Usage{User: timevalDuration(r.Utime), System: timevalDuration(r.Stime), MaxRSS: r.Maxrss * 1024}
}

// treeUsage is the usage of a process tree.
type treeUsage struct {
	user, system time.Duration
	// whole reports whether user and system cover all processes that have ever been in the tree.
	whole     bool
	rss       int64
	processes int
	gpuMemory int64
	gpus      float64
}

// hostUsage is a snapshot of the host's processes.
type hostUsage struct {
	s       *supervisor
	side    int
	leaders map[int]*process
	stats   map[int]proc.Stat
	// owners caches the owners of processes, with nil for those that are not part of a task.
	owners map[int]*process
	uses   map[*process]*treeUsage
}

// read sums the leaders' trees.
func (h *hostUsage) read(pids []int) {
	var buf [1024]byte
	for _, pid := range pids {
		if stat, err := proc.ReadStatInto(pid, buf[:]); err == nil {
			h.stats[pid] = stat
		}
	}
	page := int64(os.Getpagesize())
	for pid, stat := range h.stats {
		use := h.uses[h.owner(pid)]
		if use == nil {
			continue
		}
		use.user += stat.User + stat.ChildUser
		use.system += stat.System + stat.ChildSystem
		use.rss += stat.RSS * page
		if !stat.Dead() {
			use.processes++
		}
	}
	for p, use := range h.uses {
		if p.cgroup != "" {
			use.readCgroup(p.cgroup)
		}
	}
}

// owner returns the task process to which an OS process belongs. It checks the sessions of the OS
// process and its ancestors and, for an orphan, the cookie.
func (h *hostUsage) owner(pid int) *process {
	if p, known := h.owners[pid]; known {
		return p
	}
	h.owners[pid] = nil // pids reused during the read can form a cycle
	stat, ok := h.stats[pid]
	if !ok || pid == h.side {
		return nil
	}
	p := h.leaders[stat.Session]
	switch {
	case p != nil:
	case stat.PPID == os.Getpid():
		if cookie := ofInstance(readCookies(pid), h.s.state.instance); cookie != "" {
			h.s.mu.Lock()
			p = h.s.byCookie(cookie)
			h.s.mu.Unlock()
		}
	case stat.PPID > 1:
		p = h.owner(stat.PPID)
	}
	h.owners[pid] = p
	return p
}

func (h *hostUsage) addGPUs(gpus []GPUProcess) {
	for _, g := range gpus {
		if use := h.uses[h.owner(g.PID)]; use != nil {
			use.gpuMemory += g.Memory
			use.gpus += g.Busy
		}
	}
}

// readCgroup reads the kernel's counters of a cgroup. Memory is known only if there is a memory
// controller. Shared pages count once, and the page cache is excluded, since it belongs to the
// host.
func (t *treeUsage) readCgroup(dir string) {
	stat := cgroup.Read(dir, "cpu.stat")
	user, ok := cgroupNumber(stat, "user_usec")
	system, also := cgroupNumber(stat, "system_usec")
	if t.whole = ok && also; t.whole {
		t.user, t.system = time.Duration(user)*time.Microsecond, time.Duration(system)*time.Microsecond
	}
	stat = cgroup.Read(dir, "memory.stat")
	anon, ok := cgroupNumber(stat, "anon")
	if shmem, also := cgroupNumber(stat, "shmem"); ok && also {
		t.rss = anon + shmem
	}
}

// cgroupNumber finds the line "name number" in a file.
func cgroupNumber(file []byte, name string) (int64, bool) {
	for line := range bytes.Lines(file) {
		if rest, ok := strings.CutPrefix(string(line), name+" "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// cgroupUsage returns the processor time of everything that has ever been in the process's cgroup.
func (p *process) cgroupUsage() *treeUsage {
	t := &treeUsage{}
	if p.cgroup != "" {
		t.readCgroup(p.cgroup)
	}
	return t
}
