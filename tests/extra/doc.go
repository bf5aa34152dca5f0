// Package extra contains tests with rare requirements: PyTorch's own launcher tests, qemu machines
// for arm64 and with systemd, Temporal's own server on PostgreSQL, and packages from npm. Makefile
// targets run them.
package extra
