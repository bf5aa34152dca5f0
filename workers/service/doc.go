// Package service writes units of systemd that start host workers. It is pure: its callers
// decide where to write them, and call systemd.
//
// Tasks are children of the host worker and inherit all that systemd does to it. So the unit of
// one that runs tasks has no hardening: NoNewPrivileges would break programs that are setuid,
// of which MPI and containers have some; ProtectSystem, ProtectHome and PrivateTmp would hide
// files from tasks, and the shared memory of one run from another's tools; DevicePolicy would
// hide GPUs; and a filter of system calls would end debuggers and profilers. A policy and the
// limits of a spec restrict tasks instead. A controller runs no task, so its unit gives up all
// that it can.
package service
