// Package hosts has the commands for the hosts of a queue and their policies: host list, host
// show, host settings, host cordon, host drain, host uncordon, and policy.
package hosts
