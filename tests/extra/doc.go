// Package extra has tests that take what few machines have: PyTorch's own tests of its launcher, and
// machines of qemu for arm64 and with systemd. Targets of the Makefile run them.
package extra
