package resources

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestParseXid(t *testing.T) {
	boot := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC)
	at := boot.Add(62367826 * time.Microsecond)
	for record, want := range map[string]XidError{
		"4,812,62367826,-;NVRM: Xid (PCI:0000:00:06): 31, pid=1207, name=bad, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS\n SUBSYSTEM=pci\n": {
			Number: 31, GPU: "0000:00:06", PID: 1207, Name: "bad", At: at,
			Text: "channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS",
		},
		"4,812,62367826,-;NVRM: Xid (PCI:0000:00:06): 43, pid=1038, name=python3, channel 0x00000012\n": {
			Number: 43, GPU: "0000:00:06", PID: 1038, Name: "python3", Text: "channel 0x00000012", At: at,
		},
		"4,812,62367826,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n": {
			Number: 79, GPU: "0000:3b:00", Text: "GPU has fallen off the bus.", At: at,
		},
		"4,812,62367826,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n": {
			Number: 79, GPU: "0000:3b:00", Text: "GPU has fallen off the bus.", At: at,
		},
		"4,812,62367826,-;NVRM: Xid (0000:3b:00): 48\n": {Number: 48, GPU: "0000:3b:00", At: at},
	} {
		e, ok := parseXid(record, boot)
		assert.True(t, ok, record)
		assert.Equal(t, want, e, record)
	}
	for _, record := range []string{
		"", "4,1,7100000000,-;usb 1-1: Xid (PCI): 79", "nonsense;NVRM: Xid (PCI:0): 79", "4,1,x,-;NVRM: Xid (PCI:0): 79",
		"4,1,7,-;NVRM: Xid (PCI:0): 99999999999999999999",
	} {
		_, ok := parseXid(record, boot)
		assert.False(t, ok, record)
	}
}

func TestXidString(t *testing.T) {
	e := XidError{Number: 31, GPU: "0000:00:06", PID: 1207, Name: "bad", Text: "MMU Fault"}
	assert.Equal(t, "Xid 31 of GPU 0000:00:06 (pid 1207, bad): MMU Fault", e.String())
	e = XidError{Number: 79, GPU: "0000:3b:00"}
	assert.Equal(t, "Xid 79 of GPU 0000:3b:00", e.String())
}

func TestChooseXid(t *testing.T) {
	end := time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC)
	start := end.Add(-time.Hour)
	at := func(before time.Duration, number, pid int) XidError {
		return XidError{Number: number, PID: pid, At: end.Add(-before)}
	}
	lives := func(pid int) bool { return pid == 8 }
	for name, c := range map[string]struct {
		all  []XidError
		want int // the number
	}{
		"none":                                 {nil, 0},
		"its own before others":                {[]XidError{at(2*time.Second, 79, 0), at(time.Second, 31, 7), at(0, 43, 7)}, 31},
		"its own, long ago":                    {[]XidError{at(30*time.Minute, 31, 7)}, 31},
		"of the hardware":                      {[]XidError{at(30*time.Second, 79, 0), at(10*time.Second, 119, 0)}, 79},
		"of the hardware, long ago":            {[]XidError{at(2*time.Minute, 79, 0)}, 0},
		"of its child":                         {[]XidError{at(time.Second, 31, 9)}, 31},
		"of a child that ended long ago":       {[]XidError{at(time.Minute, 31, 9)}, 0},
		"of another that lives":                {[]XidError{at(time.Second, 31, 8)}, 0},
		"before the start, with the same pid":  {[]XidError{at(2*time.Hour, 31, 7)}, 0},
		"after the end":                        {[]XidError{at(-2*time.Second, 79, 0)}, 0},
		"reported late":                        {[]XidError{at(-time.Second/2, 31, 7)}, 31},
		"of a process that is unknown":         {[]XidError{at(time.Second, 31, 0)}, 0},
		"a child's error after the hardware's": {[]XidError{at(time.Second, 48, 0), at(0, 43, 9)}, 48},
	} {
		e, ok := chooseXid(c.all, 7, start, end, lives)
		assert.Equal(t, c.want != 0, ok, name)
		assert.Equal(t, c.want, e.Number, name)
	}
}
