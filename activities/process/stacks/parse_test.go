package stacks

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

func TestParseStatus(t *testing.T) {
	s := parseStatus([]byte("Name:\tpython3\nNSpid:\t4711\t12\nSigCgt:\t0800000000000002\n"))
	assert.Equal(t, []int{4711, 12}, s.ids, "the last is its own in a container")
	assert.True(t, s.catches(60))
	assert.True(t, s.catches(2))
	assert.False(t, s.catches(59))
	assert.Equal(t, status{}, parseStatus(nil))
}

func TestParseCall(t *testing.T) {
	link := func(fd int) string { return map[int]string{5: "(pipe:[1])"}[fd] }
	for raw, want := range map[string]string{
		"running\n": "", "": "", "-1 0x7ffe 0x7f": "",
		"99999 0x1 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f": "system call 99999",
	} {
		assert.Equal(t, want, parseCall([]byte(raw), link).String(), raw)
	}
	for number, name := range onDescriptor {
		raw := []byte(strconv.Itoa(number) + " 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffe 0x7f")
		assert.Equal(t, name+" on descriptor 5 (pipe:[1])", parseCall(raw, link).String())
		assert.NotContains(t, others, number)
	}
	for number, name := range others {
		assert.Equal(t, name, parseCall([]byte(strconv.Itoa(number)+" 0x5 0x0"), link).String())
	}
}

func TestParseKernelStack(t *testing.T) {
	assert.Equal(t, []string{"futex_wait+0x1/0x2", "do_syscall_64+0x1/0x2"},
		parseKernelStack([]byte("[<0>] futex_wait+0x1/0x2\n[<0>] do_syscall_64+0x1/0x2\n")))
	assert.Len(t, parseKernelStack([]byte(strings.Repeat("[<0>] again\n", 1000))), mostFrames+1)
	assert.Empty(t, parseKernelStack(nil))
}

func TestParseCgroup(t *testing.T) {
	for raw, want := range map[string]string{
		"0::/user.slice/clusterrun-i1/hash-0-worker-0-0\n":            "/user.slice/clusterrun-i1/hash-0-worker-0-0",
		"1:name=x:/y\n0::/clusterrun-i1/hash-0-worker-0-0/below/it\n": "/clusterrun-i1/hash-0-worker-0-0",
		"0::/clusterrun-i1\n": "", "0::/\n": "", "": "", "0::/system.slice/clusterrun.service\n": "",
	} {
		assert.Equal(t, want, parseCgroup([]byte(raw)), raw)
	}
}

func TestPrintable(t *testing.T) {
	assert.Equal(t, `a\x1b[31m\nb?é`, printable("a\x1b[31m\nb\xffé", 100))
	assert.Equal(t, "abc…", printable("abcdefg", 6))
	assert.Equal(t, "a\tb\n\\x00\n", printableLines("a\tb\n\x00"))
}

func TestOwnerOfATableWithACircle(t *testing.T) {
	all := table{5: {PPID: 6}, 6: {PPID: 5}}
	assert.Zero(t, ownerOf(5, all, map[int]int{}), "a table is no snapshot")
}

// A shell whose only child has just ended is looked at itself.
func TestTheWorkerOfATask(t *testing.T) {
	shell := &process{pid: 1, threads: []thread{{channel: "do_wait"}}}
	child := &process{pid: 2, Stat: proc.Stat{PPID: 1}, threads: []thread{{channel: "hrtimer_nanosleep"}}}
	r := &report{processes: []*process{shell, child}}
	require.Same(t, child, r.worker())
	child.ended = true
	require.Same(t, shell, r.worker())
}
