package stacks

// mostDetached bounds the reads that go on, those that hang for good included.
const mostDetached = 512

var detachedSlots = make(chan struct{}, mostDetached)

// detached does something that may hang with the process it looks at, in a
// goroutine that nobody has to wait for. It reports whether it could be started:
// too many may hang already.
func detached(do func()) bool {
	select {
	case detachedSlots <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer func() { <-detachedSlots }()
		do()
	}()
	return true
}
