package spec

import "slices"

// hardwareXids are the Xid errors in a GPU's memory, NVLink, bus and internal processor
// (docs.nvidia.com/deploy/xid-errors). Programs may cause all other Xid errors.
var hardwareXids = []int{48, 62, 63, 64, 74, 79, 92, 95, 119, 120, 123, 136, 140, 143}

// HardwareXid reports whether an Xid error is caused by the hardware, and so by the host, instead
// of by a program.
func HardwareXid(number int) bool { return slices.Contains(hardwareXids, number) }
