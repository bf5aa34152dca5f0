package cli

// These are the descriptors that `supervise` inherits: the first one ends when its owner is
// gone, and tasks can get the others if the options say so.
const (
	LifelineFD = 3 + iota
	StdinFD
	StdoutFD
	StderrFD
	SideFD // see ownersSideFlag in package worker
)
