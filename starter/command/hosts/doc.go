// Package hosts implements the commands for a queue's hosts and their policies: host list, host
// show, host cordon, host drain, host uncordon, and policy.
package hosts
