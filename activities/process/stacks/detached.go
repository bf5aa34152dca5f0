package stacks

// maxDetached limits the reads in progress, including those that hang forever.
const maxDetached = 512

var detachedSlots = make(chan struct{}, maxDetached)

// detached runs do in a goroutine that the caller need not wait for, because do may hang with the
// process that it reads. It returns false without running do if too many already hang.
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
