// Package notices sends notices about runs: to webhooks, signed as Standard Webhooks
// (standardwebhooks.com) are, and to the stdin of commands. Its caller asks the policy of the
// host, reads secrets and repeats tries that have failed.
package notices
