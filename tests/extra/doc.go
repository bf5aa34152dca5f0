// Package extra contains tests with rare requirements: PyTorch's own launcher tests, and qemu
// machines for arm64 and with systemd. Makefile targets run them.
package extra
