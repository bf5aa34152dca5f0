// Package hosts has the commands for the hosts of a queue and the runs that wait for them:
// hosts, host cordon, host drain, host uncordon, queue and policy.
package hosts
