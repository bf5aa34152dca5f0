package spec

import "slices"

// hardwareXids are the Xid errors of a GPU's memory, NVLink, bus and own processor
// (docs.nvidia.com/deploy/xid-errors). The others may be errors of programs.
var hardwareXids = []int{48, 62, 63, 64, 74, 79, 92, 95, 119, 120, 123, 136, 140, 143}

// HardwareXid reports whether an Xid error is one of the hardware, and so of the host, and not of
// a program.
func HardwareXid(number int) bool { return slices.Contains(hardwareXids, number) }
