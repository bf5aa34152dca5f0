package spec

import (
	"cmp"
	"fmt"
	"math"
)

const (
	// MinMemory is the least memory that a limit may leave: no program starts with less.
	MinMemory = 1 << 20
	// CoreUnlimited and CoreNone are the sizes of core dumps that are no sizes.
	CoreUnlimited, CoreNone = "unlimited", "none"
)

// LimitsOf returns the limits of a task.
func (s *RunSpec) LimitsOf(t Task) Limits {
	g, run := s.group(t.Type).Limits, s.Limits
	return Limits{
		Memory: cmp.Or(g.Memory, run.Memory), CPUs: cmp.Or(g.CPUs, run.CPUs), PIDs: cmp.Or(g.PIDs, run.PIDs),
		NoFile: cmp.Or(g.NoFile, run.NoFile), Core: cmp.Or(g.Core, run.Core),
	}
}

// MemoryBytes returns the limit of memory; 0: there is none.
func (l Limits) MemoryBytes() int64 { return bytesOf(l.Memory) }

// CoreBytes returns the largest core dump; ok is false where nothing is said of it.
func (l Limits) CoreBytes() (n uint64, ok bool) {
	switch l.Core {
	case "":
		return 0, false
	case CoreUnlimited:
		return math.MaxUint64, true
	}
	return uint64(bytesOf(l.Core)), true
}

// QuotaBytes returns how many bytes the run may write to output files on each host; 0: any
// number.
func (l Logs) QuotaBytes() int64 { return bytesOf(l.Quota) }

// bytesOf reads a size that is valid.
func bytesOf(text string) int64 {
	n, err := ParseSize(text)
	if err != nil {
		return 0
	}
	return n
}

func (c *checker) checkMemory(path, text string) { c.checkSizeOf(path, text, MinMemory, "1MiB") }
func (c *checker) checkQuota(path, text string)  { c.checkSizeOf(path, text, MinQuota, "4KiB") }

// MinQuota is the least quota of output: less has no room for what is said about the rest.
const MinQuota = 4 << 10

func (c *checker) checkSizeOf(path, text string, least int64, remedy string) {
	if text == "" {
		return
	}
	n, err := ParseSize(text)
	c.addError(path, err)
	if err == nil && n < least {
		c.add(path, fmt.Sprintf("must be at least %s, is %s", remedy, Quote(text)), "leave it out for no limit")
	}
}

func (c *checker) checkCore(path, text string) {
	if text == CoreUnlimited || text == CoreNone {
		return
	}
	if _, err := ParseSize(text); text != "" && err != nil {
		c.add(path, Quote(text)+" is no size of a core dump", "write none, unlimited, or a size such as 1GiB")
	}
}
