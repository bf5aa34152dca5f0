package cli

// The descriptors that `supervise` inherits: one on which it sees that its owner is
// gone, and those that tasks can get, as far as its options speak of them.
const (
	LifelineFD = 3 + iota
	StdinFD
	StdoutFD
	StderrFD
	SideFD // see ownersSideFlag
)
